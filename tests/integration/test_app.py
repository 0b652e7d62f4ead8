"""The composition root inside this process, where the environment can be replaced."""

from pathlib import Path

import pytest
from recalld_sidecar.app import Sidecar
from recalld_sidecar.config import Config, TcpAddress, UnixAddress
from recalld_sidecar.http import HttpError

ANY_PORT = TcpAddress("127.0.0.1", 0)


def test_the_default_directory_is_made_with_its_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "a" / "b"))
    config = Config(listen=(ANY_PORT,), http=None)
    Sidecar(config).stop()
    assert (tmp_path / "a" / "b" / "recalld").is_dir()


def test_what_was_taken_is_given_back_when_it_cannot_start(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path / "data", listen=(ANY_PORT,), http=ANY_PORT)
    first = Sidecar(config)
    assert first.http is not None
    taken = Config(
        data_dir=tmp_path / "other", listen=(ANY_PORT, UnixAddress(tmp_path / "a")), http=first.http
    )
    with pytest.raises(HttpError):
        Sidecar(taken)
    assert not (tmp_path / "a").exists()
    first.stop()
    second = Sidecar(taken)
    second.start()
    assert isinstance(second.listen[0], TcpAddress)
    assert second.listen[0].port
    assert second.stop()
