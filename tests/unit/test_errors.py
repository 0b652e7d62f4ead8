"""Errors born in Python: message and details agree, and carry one reason of the contract."""

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from recalld.v1 import errors_pb2
from recalld_sidecar import errors
from recalld_sidecar._core import CoreError


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.unknown_method("/a.B/C"), 12, "UNKNOWN_METHOD"),
        (errors.malformed_request("GetStatsRequest"), 3, "MALFORMED_REQUEST"),
        (errors.internal("r1"), 13, "INTERNAL"),
    ],
)
def test_message_and_details_agree(error: CoreError, code: int, reason: str) -> None:
    status = status_pb2.Status.FromString(error.status)
    assert (error.code, status.code) == (code, code)
    assert status.message == error.message
    info = error_details_pb2.ErrorInfo()
    assert len(status.details) == 1
    assert status.details[0].Unpack(info)
    assert (info.domain, info.reason) == ("recalld", reason)
    assert errors.reason_of(error) == reason
    assert errors_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")


def test_an_internal_error_names_its_request() -> None:
    error = errors.internal("r1")
    info = error_details_pb2.ErrorInfo()
    status_pb2.Status.FromString(error.status).details[0].Unpack(info)
    assert info.metadata == {"request_id": "r1"}
    assert "r1" in error.message


def test_an_error_without_details_has_no_reason() -> None:
    assert (
        errors.reason_of(CoreError(13, "x", status_pb2.Status(code=13, message="x").SerializeToString()))
        == ""
    )


def test_every_status_code_has_its_number() -> None:
    assert errors.STATUS_CODES[0] is grpc.StatusCode.OK
    assert sorted(errors.STATUS_CODES) == list(range(17))
