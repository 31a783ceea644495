"""Submits an agent's action to an Assent service, and runs it only if the service allows it. Uses only the standard library."""

from .client import AsyncAssent, Assent
from .errors import (
    AssentError,
    Denied,
    NotJson,
    OutputWithheld,
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
    "OutputWithheld",
    "Pending",
    "PlanRecord",
    "RequestRefused",
    "ServiceUnavailable",
    "Unauthorized",
    "govern",
]
