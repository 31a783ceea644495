"""Asks an Assent service whether an agent's action may happen, and runs it only then. Standard library only."""

from .client import AsyncAssent, Assent
from .errors import (
    AssentError,
    Denied,
    NotJson,
    Pending,
    RequestRefused,
    ServiceUnavailable,
    Unauthorized,
)
from .govern import govern
from .records import ActionRecord, ActionRequest, Event, PlanRecord

__all__ = [
    "ActionRecord",
    "ActionRequest",
    "Assent",
    "AssentError",
    "AsyncAssent",
    "Denied",
    "Event",
    "NotJson",
    "Pending",
    "PlanRecord",
    "RequestRefused",
    "ServiceUnavailable",
    "Unauthorized",
    "govern",
]
