"""The timeline service: views of many tables, kept up to date, for whoever speaks Hudi's protocol."""

from hoodie.server.answer import Answer
from hoodie.server.service import Service

__all__ = ["Answer", "Service"]
