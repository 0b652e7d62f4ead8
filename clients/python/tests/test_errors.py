"""Each error of the server becomes the exception that means it."""

import pickle
from datetime import timedelta
from typing import Any

import grpc
import pytest
import recalld
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from recalld.v1 import errors_pb2, memory_service_pb2

Code = grpc.StatusCode

MEANINGS: dict[str, tuple[grpc.StatusCode, type[recalld.RecalldError]]] = {
    "INVALID_FIELD": (Code.INVALID_ARGUMENT, recalld.InvalidArgument),
    "MALFORMED_REQUEST": (Code.INVALID_ARGUMENT, recalld.InvalidArgument),
    "UNKNOWN_METHOD": (Code.UNIMPLEMENTED, recalld.Unimplemented),
    "VERSION_CONFLICT": (Code.ABORTED, recalld.Conflict),
    "IDEMPOTENCY_KEY_REUSED": (Code.ALREADY_EXISTS, recalld.AlreadyExists),
    "TOKEN_OF_ANOTHER_STORE": (Code.FAILED_PRECONDITION, recalld.FailedPrecondition),
    "TOKEN_NOT_REACHED": (Code.DEADLINE_EXCEEDED, recalld.DeadlineExceeded),
    "DEADLINE_EXCEEDED": (Code.DEADLINE_EXCEEDED, recalld.DeadlineExceeded),
    "OVERLOADED": (Code.RESOURCE_EXHAUSTED, recalld.ResourceExhausted),
    "STORE_FULL": (Code.RESOURCE_EXHAUSTED, recalld.ResourceExhausted),
    "DAMAGED_RECORD": (Code.DATA_LOSS, recalld.DataLoss),
    "NOT_SERVING": (Code.UNAVAILABLE, recalld.Unavailable),
    "MEMORY_NOT_FOUND": (Code.NOT_FOUND, recalld.NotFound),
    "INTERNAL": (Code.INTERNAL, recalld.Internal),
    "STORE_UNAVAILABLE": (Code.UNAVAILABLE, recalld.Unavailable),
}


def info(reason: str, **metadata: str) -> Any:
    return error_details_pb2.ErrorInfo(domain="recalld", reason=reason, metadata=metadata)


def test_every_reason_of_the_contract_is_here() -> None:
    names = {name.removeprefix("ERROR_REASON_") for name in errors_pb2.ErrorReason.keys()}  # noqa: SIM118
    assert names - {"UNSPECIFIED"} == MEANINGS.keys()


@pytest.mark.parametrize("reason", MEANINGS)
async def test_a_reason_is_its_class(alice: Any, sidecar: Any, answer: Any, reason: str) -> None:
    code, expected = MEANINGS[reason]
    for _ in range(4):
        sidecar.fail(code, "what happened", info(reason, record="7"))
    with pytest.raises(recalld.RecalldError) as caught:
        await answer(alice.get(["a"]))
    error = caught.value
    assert type(error) is expected
    assert (error.code, error.reason, error.message) == (code, reason, "what happened")
    assert error.metadata == {"record": "7"}
    assert str(error) == f"{reason}: what happened"
    assert isinstance(error.__cause__, grpc.RpcError)


async def test_a_code_without_a_class_is_the_base(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.fail(Code.PERMISSION_DENIED, "no")
    with pytest.raises(recalld.RecalldError) as caught:
        await answer(alice.get(["a"]))
    assert type(caught.value) is recalld.RecalldError
    assert (caught.value.code, str(caught.value)) == (Code.PERMISSION_DENIED, "PERMISSION_DENIED: no")


async def test_wrong_fields_are_named(alice: Any, sidecar: Any, answer: Any) -> None:
    wrong = error_details_pb2.BadRequest()
    wrong.field_violations.add(field="items[0].content", description="is empty")
    wrong.field_violations.add(field="items[0].tags[3]", description="is too long")
    for _ in range(2):
        sidecar.fail(Code.INVALID_ARGUMENT, "two fields", info("INVALID_FIELD"), wrong)
    with pytest.raises(recalld.InvalidArgument) as of_many:
        await answer(alice.write_many([recalld.Item("")]))
    assert of_many.value.field == "items[0].content"
    assert of_many.value.violations == (
        recalld.Violation("items[0].content", "is empty"),
        recalld.Violation("items[0].tags[3]", "is too long"),
    )
    with pytest.raises(recalld.InvalidArgument) as of_one:
        await answer(alice.write(""))
    assert [violation.field for violation in of_one.value.violations] == ["content", "tags[3]"]


async def test_why_not_names_the_arguments_of_its_search(alice: Any, sidecar: Any, answer: Any) -> None:
    wrong = error_details_pb2.BadRequest()
    wrong.field_violations.add(field="search.limit", description="is too large")
    wrong.field_violations.add(field="id", description="is not an id")
    sidecar.fail(Code.INVALID_ARGUMENT, "two fields", info("INVALID_FIELD"), wrong)
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(alice.why_not("q", id="x", limit=2000))
    assert [violation.field for violation in caught.value.violations] == ["limit", "id"]


@pytest.mark.parametrize(
    ("metadata", "version"), [({"current_version": "7"}, 7), ({"current_version": "0"}, 0), ({}, None)]
)
async def test_a_conflict_has_the_current_version(
    alice: Any, sidecar: Any, answer: Any, metadata: dict[str, str], version: int | None
) -> None:
    sidecar.fail(Code.ABORTED, "lost", info("VERSION_CONFLICT", **metadata))
    with pytest.raises(recalld.Conflict) as caught:
        await answer(alice.write("x", key="k", if_version=3))
    assert caught.value.current_version == version


async def test_exhausted_says_when_to_come_back(alice: Any, sidecar: Any, answer: Any, clock: Any) -> None:
    told = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=60))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", info("OVERLOADED"), told)
    with pytest.raises(recalld.ResourceExhausted) as caught:
        await answer(alice.get(["a"]))
    assert caught.value.retry_after == timedelta(seconds=60)
    assert clock.pauses == []


@pytest.mark.parametrize("trailer", [None, b"\xff\xff", b""])
async def test_details_may_be_missing_or_unreadable(
    alice: Any, sidecar: Any, answer: Any, trailer: bytes | None
) -> None:
    sidecar.fail(Code.INVALID_ARGUMENT, "wrong", trailer=trailer)
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(alice.get(["a"]))
    assert (caught.value.message, caught.value.reason, caught.value.field) == ("wrong", "", "")


async def test_a_reason_of_another_domain_is_not_ours(alice: Any, sidecar: Any, answer: Any) -> None:
    other = error_details_pb2.ErrorInfo(domain="proxy.example", reason="INVALID_FIELD")
    sidecar.fail(Code.INTERNAL, "wrong", other)
    with pytest.raises(recalld.Internal) as caught:
        await answer(alice.get(["a"]))
    assert caught.value.reason == ""


def test_errors_travel_between_processes() -> None:
    wrong = recalld.InvalidArgument("x", violations=[recalld.Violation("a", "b")], reason="INVALID_FIELD")
    copy = pickle.loads(pickle.dumps(wrong))
    assert (type(copy), copy.field, str(copy)) == (recalld.InvalidArgument, "a", "INVALID_FIELD: x")


async def test_an_answer_that_is_none_is_an_error(alice: Any, sidecar: Any, answer: Any) -> None:
    # Another service's message, whose first field is a text where hits belong.
    sidecar.will(memory_service_pb2.BriefResponse(text="\x7f"))
    with pytest.raises(recalld.Internal, match="SearchResponse"):
        await answer(alice.search("q"))
