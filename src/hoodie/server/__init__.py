"""The timeline service: views of many tables, kept up to date, for whoever speaks Hudi's protocol."""

from hoodie.server.service import Answer, Service

__all__ = ["Answer", "Service"]
