package org.apache.hudi.aws.transaction.lock;

import java.util.Properties;
import java.util.function.Supplier;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;
import software.amazon.awssdk.core.ResponseBytes;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.PutObjectRequest;
import software.amazon.awssdk.services.s3.model.S3Exception;

/**
 * The requests of Hudi's storage-based lock provider to S3: written for these tests, for machines whose registry has the
 * provider (it is in the Spark bundle) but not the module with Hudi's own client, whose name it has to bear. What is
 * asked, when, and what an answer means is up to the provider.
 */
public final class S3StorageLockClient implements StorageLockClient {
  private static final int ABSENT = 404;
  private static final int OTHER_VERSION = 412;

  private final S3Client s3 = S3Client.create();
  private final Pair<String, String> lockFile;

  public S3StorageLockClient(String owner, String lockFile, Properties settings) {
    this.lockFile = StorageLockClient.parseBucketAndPath(lockFile);
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    try {
      ResponseBytes<GetObjectResponse> found = get(lockFile);
      String version = found.response().eTag();
      return Pair.of(
          LockGetResult.SUCCESS, Option.of(StorageLockFile.createFromStream(found.asInputStream(), version)));
    } catch (S3Exception error) {
      return Pair.of(
          error.statusCode() == ABSENT ? LockGetResult.NOT_EXISTS : LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData data, Option<StorageLockFile> previous) {
    PutObjectRequest.Builder request = to(lockFile);
    if (previous.isPresent()) {
      request.ifMatch(previous.get().getVersionId());
    } else {
      request.ifNoneMatch("*");
    }
    RequestBody content = RequestBody.fromBytes(StorageLockFile.toByteArray(data));
    try {
      String version = s3.putObject(request.build(), content).eTag();
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, version)));
    } catch (S3Exception error) {
      boolean isTaken = error.statusCode() == OTHER_VERSION;
      return Pair.of(isTaken ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Option<String> readObject(String path, boolean looksFirst) {
    return orEmpty(() -> get(StorageLockClient.parseBucketAndPath(path)).asUtf8String());
  }

  @Override
  public boolean writeObject(String path, String content) {
    PutObjectRequest request = to(StorageLockClient.parseBucketAndPath(path)).build();
    return orEmpty(() -> s3.putObject(request, RequestBody.fromString(content))).isPresent();
  }

  @Override
  public void close() {
    s3.close();
  }

  private ResponseBytes<GetObjectResponse> get(Pair<String, String> place) {
    return s3.getObjectAsBytes(request -> request.bucket(place.getLeft()).key(place.getRight()));
  }

  private static PutObjectRequest.Builder to(Pair<String, String> place) {
    return PutObjectRequest.builder().bucket(place.getLeft()).key(place.getRight());
  }

  private static <T> Option<T> orEmpty(Supplier<T> answer) {
    try {
      return Option.of(answer.get());
    } catch (S3Exception error) {
      return Option.empty();
    }
  }
}
