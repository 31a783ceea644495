"""Types of the API objects that the client uses. Objects keep members that these types do not declare."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, TypedDict


class _Required(TypedDict):
    agent_id: str
    tool: str
    operation: str


class ActionRequest(_Required, total=False):
    """The request of an agent. Policies read all of it except `meta`, which is only stored and displayed."""

    params: Dict[str, Any]
    context: Dict[str, Any]
    meta: Dict[str, Any]


class _Action(TypedDict):
    """The members that every record has."""

    id: str
    agent_id: str
    tool: str
    operation: str
    status: str


class ActionRecord(_Action, total=False):
    """An action in the service. Times are in RFC 3339 format."""

    params: Dict[str, Any]
    context: Dict[str, Any]
    meta: Dict[str, Any]
    names: Dict[str, str]
    decision: str
    outcome: str
    reason: str
    reason_code: str
    denied_by: Optional[str]
    rejection: Optional[Dict[str, Any]]
    risk_level: Optional[str]
    request_hash: Optional[str]
    decision_hash: str
    approvals: List[Dict[str, Any]]
    questions: List[Dict[str, Any]]
    proposed: Optional[Dict[str, Any]]
    approval_token: str
    preview: Optional[str]
    shown_first: List[str]
    unusual: List[str]
    differs_from: Optional[Dict[str, Any]]
    earlier_votes: List[Dict[str, Any]]
    compared_with: int
    altered: bool
    approvals_needed: Optional[int]
    approved_until: Optional[str]
    expires_at: Optional[str]
    permit: Optional[str]
    result: Optional[Dict[str, Any]]
    created_at: str
    updated_at: str


class _Plan(TypedDict):
    """The members that every record has."""

    id: str
    actions: List[ActionRecord]


class PlanRecord(_Plan, total=False):
    """A plan with its actions, in order."""

    agent_id: str
    ordered: bool
    stop_on_failure: bool
    digest: str
    stopped: Optional[Dict[str, Any]]
    submitted_by: str
    created_at: str
    approval_token: str
    signature_required: bool


def open_question(action: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Returns the first question of an approver that the agent has not answered."""
    if action.get("status") != "pending_approval":
        return None
    questions: List[Dict[str, Any]] = action.get("questions") or []
    return next((one for one in questions if one.get("answer") is None), None)


class Event(TypedDict):
    """One event of the ledger. To continue after it, pass its `id` as `after`."""

    id: str
    event: str
    data: Any
