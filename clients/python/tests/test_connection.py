"""TLS and keys: a connection is encrypted as asked, and a key never travels where others can read it."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import recalld
from recalld import AsyncClient, Client, Tls
from recalld._channel import connection

from .conftest import Sidecar, server_of

KEY = "key-1~=/+"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `certificate.pem`, which vouches for itself on this host, and its `key.pem`."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made = """
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out certificate.pem
    """
    subprocess.run(made.split(), cwd=folder, capture_output=True, check=True)
    return folder


@pytest.fixture(params=[False, True], ids=["server", "mutual"])
def encrypted(files: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Sidecar, Tls]]:
    """A sidecar behind TLS, and what reaches it; it may ask its clients who they are."""
    certificate, key = files / "certificate.pem", files / "key.pem"
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), certificate.read_bytes())],
        root_certificates=certificate.read_bytes(),
        require_client_auth=request.param,
    )
    double = Sidecar()
    server = server_of(double)
    double.target = f"127.0.0.1:{server.add_secure_port('127.0.0.1:0', credentials)}"
    server.start()
    if request.param:
        yield double, Tls(root_certificates=certificate, private_key=str(key), certificate_chain=certificate)
    else:
        yield double, Tls(root_certificates=certificate)
    server.stop(grace=None).wait()


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def made(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def stats(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make one call with a client of either kind, close it, and give the call's answer."""

    async def call(client: Any) -> Any:
        try:
            return await answer(client.stats())
        finally:
            await answer(client.close())

    return call


async def test_a_call_is_encrypted(made: Any, encrypted: tuple[Sidecar, Tls], stats: Any) -> None:
    sidecar, tls = encrypted
    await stats(made(sidecar.target, tls=tls, api_key=KEY))
    assert [asked.authorization for asked in sidecar.asked] == [f"Bearer {KEY}"]
    assert sidecar.asked[0].user_agent.startswith("recalld-python/")


@pytest.mark.parametrize("tls", [True, Tls(), False])
async def test_a_server_nobody_vouches_for_is_not_called(
    made: Any, encrypted: tuple[Sidecar, Tls], stats: Any, tls: bool | Tls
) -> None:
    sidecar, _ = encrypted
    with pytest.raises(recalld.Unavailable):
        await stats(made(sidecar.target, tls=tls, api_key=KEY, retries=0))
    assert sidecar.asked == []


async def test_a_key_goes_with_every_attempt(made: Any, sidecar: Sidecar, answer: Any) -> None:
    sidecar.fail(grpc.StatusCode.UNAVAILABLE, "draining")
    client = made(sidecar.target, api_key=KEY)
    await answer(client.namespace("acme").write("x"))
    await answer(client.stats())
    await answer(client.close())
    assert [asked.authorization for asked in sidecar.asked] == [f"Bearer {KEY}"] * 3


async def test_without_a_key_nothing_is_sent(made: Any, sidecar: Sidecar, stats: Any) -> None:
    await stats(made(sidecar.target))
    assert [asked.authorization for asked in sidecar.asked] == [""]


@pytest.mark.parametrize(
    "target", ["unix:/run/x.sock", "localhost:1", "LOCALHOST:1", "127.9.9.9:1", "[::1]:1"]
)
async def test_a_key_may_stay_on_this_host(made: Any, target: str, answer: Any) -> None:
    await answer(made(target, api_key=KEY).close())


@pytest.mark.parametrize(
    "target",
    ["db.example:1", "10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[fe80::1]:1", "localhost.example:1", "127.1:1"],
)
async def test_a_key_leaves_this_host_only_encrypted(made: Any, target: str, answer: Any) -> None:
    with pytest.raises(recalld.InvalidArgument, match="connect with tls") as caught:
        made(target, api_key=KEY)
    assert caught.value.field == "api_key"
    assert KEY not in str(caught.value)
    await answer(made(target, api_key=KEY, tls=True).close())


@pytest.mark.parametrize("key", ["", "two words", "line\n", "clé", 7])
def test_a_key_that_no_header_holds_is_refused(made: Any, key: Any) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        made("localhost:1", api_key=key)
    assert caught.value.field == "api_key"
    assert not key or str(key) not in str(caught.value)


async def test_a_key_is_not_shown(made: Any, answer: Any) -> None:
    client = made("localhost:1", api_key=KEY)
    assert KEY not in repr(client)
    await answer(client.close())
    assert KEY not in repr(connection("localhost:1", tls=False, api_key=KEY))


@pytest.mark.parametrize(
    ("tls", "wrong"),
    [
        ("ca.pem", "tls"),
        (None, "tls"),
        (Tls(root_certificates="missing.pem"), "tls.root_certificates"),
        (Tls(root_certificates=7), "tls.root_certificates"),  # type: ignore[arg-type]
        (Tls(root_certificates="empty.pem"), "tls.root_certificates"),
        (Tls(private_key="empty.pem", certificate_chain="missing.pem"), "tls.private_key"),
        (Tls(private_key="key.pem"), "tls"),
        (Tls(certificate_chain="chain.pem"), "tls"),
    ],
)
def test_tls_that_cannot_be_used_is_refused(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: Any, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.pem").touch()
    with pytest.raises(recalld.InvalidArgument) as caught:
        made("localhost:1", tls=tls)
    assert caught.value.field == wrong
