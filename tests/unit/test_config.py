"""Configuration: precedence, addresses, and messages that name the field and its origin."""

import ipaddress
import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from recalld_sidecar import _core
from recalld_sidecar.config import (
    BUILT_IN_COUNTERS,
    MAX_SOCKET_PATH_BYTES,
    Config,
    ConfigError,
    TcpAddress,
    UnixAddress,
    parse_address,
    parse_tcp_address,
)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("RECALLD_"):
            monkeypatch.delenv(name)


def write(folder: Path, text: str) -> Path:
    path = folder / "recalld.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_win_over_environment_over_file_over_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, "max_in_flight = 1\nindex_after = 1\nmax_queued_writes = 1\n")
    monkeypatch.setenv("RECALLD_MAX_IN_FLIGHT", "2")
    monkeypatch.setenv("RECALLD_INDEX_AFTER", "2")

    config = Config.load({"max_in_flight": "3"}, file)

    assert (config.max_in_flight, config.index_after, config.max_queued_writes) == (3, 2, 1)
    assert config.drain_seconds == 10


def test_lists_come_from_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = (UnixAddress(Path("/run/a.sock")), TcpAddress("127.0.0.1", 7411))
    addresses = ["unix:/run/a.sock", "127.0.0.1:7411"]

    assert Config.load({"listen": addresses}).listen == expected
    assert Config.load({}, write(tmp_path, f"listen = {addresses}")).listen == expected
    monkeypatch.setenv("RECALLD_LISTEN", ", ".join(addresses))
    assert Config.load({}).listen == expected


def test_tokenizers_come_from_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {"llama-3": Path("/models/a=b.json"), "my.own_1": tmp_path / "mine.json"}
    given = ["llama-3=/models/a=b.json", "my.own_1=mine.json"]

    assert Config.load({}).tokenizers == {}
    assert Config.load({"tokenizers": given}).tokenizers == expected
    table = '[tokenizers]\nllama-3 = "/models/a=b.json"\n"my.own_1" = "mine.json"\n'
    loaded = Config.load({}, write(tmp_path, table))
    assert loaded.tokenizers == expected
    assert Config.load({}, write(tmp_path, loaded.to_toml())).tokenizers == expected
    monkeypatch.setenv("RECALLD_TOKENIZERS", ", ".join(given))
    assert Config.load({}).tokenizers == expected


def test_built_in_counters_are_those_of_the_core() -> None:
    with pytest.raises(ValueError, match=f"known are {', '.join(BUILT_IN_COUNTERS)}$"):
        _core.count_tokens("x", "no-such-counter")


def test_the_default_socket_is_in_the_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert [str(address) for address in Config.load({}).listen] == ["unix:/run/user/1/recalld.sock"]
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    expected = f"unix:/tmp/recalld-{os.getuid()}/recalld.sock"
    assert [str(address) for address in Config.load({}).listen] == [expected]


def test_the_default_data_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert Config.load({}).data_dir == Path("/data/recalld")
    monkeypatch.setenv("XDG_DATA_HOME", "relative, so ignored")
    assert Config.load({}).data_dir == Path("/home/a/.local/share/recalld")


def test_paths_are_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/a")
    config = Config.load({"data_dir": "x/../data", "model_dir": "~/model", "listen": "unix:a.sock"})
    assert config.data_dir == tmp_path / "data"
    assert config.model_dir == Path("/home/a/model")
    assert config.listen == (UnixAddress(tmp_path / "a.sock"),)


def test_http_can_be_off() -> None:
    assert Config.load({"http": "off"}).http is None
    assert Config.load({"http": "127.0.0.1:0"}).http == TcpAddress("127.0.0.1", 0)


def test_sizes_have_units() -> None:
    assert Config.load({"max_store_bytes": "20GiB"}).max_store_bytes == 20 << 30


def test_the_configuration_is_frozen() -> None:
    config = Config.load({})
    with pytest.raises(ValidationError, match="frozen"):
        config.max_in_flight = 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"max_in_flight": "0"}, r"^max_in_flight \(from --max-in-flight\): .*greater than or equal to 1"),
        ({"max_in_flight": "x"}, r"^max_in_flight \(from --max-in-flight\): .*integer"),
        ({"max_in_flight": "1.5"}, r"max_in_flight .*integer"),
        ({"drain_seconds": "nan"}, r"^drain_seconds \(from --drain-seconds\): .*finite"),
        ({"drain_seconds": "-1"}, r"drain_seconds .*greater than or equal to 0"),
        ({"max_store_bytes": "1KiB"}, r"^max_store_bytes "),
        ({"log_level": "loud"}, r"^log_level .*'debug'"),
        ({"data_dir": ""}, r"^data_dir \(from --data-dir\): must not be empty"),
        ({"data_dir": "~nobody-of-this-name/x"}, r"^data_dir .*~nobody-of-this-name"),
        ({"listen": []}, r"^listen .*at least 1"),
        ({"listen": ""}, r"^listen .*not HOST:PORT"),
        ({"listen": ["unix:/a", "unix:/b/../a"]}, r"^listen .*unix:/a is given twice"),
        ({"listen": [{"path": "/a"}]}, r"^listen .*must be text"),
        ({"listen": [{"host": "0.0.0.0", "port": 1}]}, r"^listen .*must be text"),
        ({"http": {"host": "0.0.0.0", "port": 1}}, r"^http .*must be text"),
        ({"http": "0.0.0.0:7412"}, r"^http .*loopback"),
        (
            {"tokenizers": ["Llama=/a"]},
            r"^tokenizers \(from --tokenizers\): 'Llama' must be a name of 1 to 64",
        ),
        ({"tokenizers": ["l" * 65 + "=/a"]}, r"^tokenizers .*must be a name"),
        ({"tokenizers": ["=/a"]}, r"^tokenizers .*must be a name"),
        ({"tokenizers": ["a"]}, r"^tokenizers .*'a': must not be empty"),
        ({"tokenizers": ["approximate=/a"]}, r"^tokenizers .*'approximate' is a counter that is built in"),
        ({"tokenizers": ["a=/a", "a=/b"]}, r"^tokenizers .*'a' is given twice"),
        ({"tokenizers": [f"a{n}=/a" for n in range(17)]}, r"^tokenizers .*at most 16, not 17"),
        ({"tokenizers": {"a": 1}}, r"^tokenizers .*'a': 1 must be text"),
        ({"tokenizers": 1}, r"^tokenizers .*must be text"),
        ({"no_such": "1"}, r"^no_such .*no such setting"),
    ],
)
def test_errors_name_the_field(flags: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.load(flags)


def test_errors_name_the_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "index_after = 0\ntypo = 1\n")
    monkeypatch.setenv("RECALLD_HTTP", "10.0.0.1:80")
    with pytest.raises(ConfigError) as raised:
        Config.load({}, file)
    message = str(raised.value)
    assert f"index_after (in {file})" in message
    assert f"typo (in {file}): there is no such setting" in message
    assert "http (from RECALLD_HTTP)" in message


@pytest.mark.parametrize("text", ["max_in_flight = ", "= 1", "\x00"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigError, match="is not a TOML file"):
        Config.load({}, file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.toml: No such file"):
        Config.load({}, tmp_path / "none.toml")


text_without_nul = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20
)


@given(name=text_without_nul)
@example(name='"\\\x7f\t\U0001f600')
def test_the_printed_configuration_reads_back(name: str) -> None:
    given_config = Config(data_dir=Path("/data") / name.replace("/", "_"), http=None, drain_seconds=0.5)
    assert Config(**tomllib.loads(given_config.to_toml())) == given_config


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/a.sock", UnixAddress(Path("/run/a.sock"))),
        ("unix:///run/a.sock", UnixAddress(Path("/run/a.sock"))),
        ("127.0.0.1:7411", TcpAddress("127.0.0.1", 7411)),
        ("127.8.8.8:0", TcpAddress("127.8.8.8", 0)),
        ("localhost:1", TcpAddress("127.0.0.1", 1)),
        ("[::1]:65535", TcpAddress("::1", 65535)),
    ],
)
def test_addresses(text: str, address: UnixAddress | TcpAddress) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unix:",
        "unix:a\0b",
        "unix:/" + "a" * MAX_SOCKET_PATH_BYTES,
        "7411",
        ":7411",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:\u0661",
        "0.0.0.0:1",
        "[::]:1",
        "::1:1",
        "[127.0.0.1]:1",
        "example.com:1",
        "unix-abstract:a",
    ],
)
def test_refused_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_address(text)


@given(ip=st.ip_addresses(), port=st.integers(0, 65535))
@example(ip=ipaddress.ip_address("::1"), port=0)
@example(ip=ipaddress.ip_address("127.0.0.1"), port=65535)
@example(ip=ipaddress.ip_address("::ffff:10.0.0.1"), port=1)
def test_only_the_loopback_is_served(ip: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    text = f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    if ip.is_loopback:
        assert str(parse_tcp_address(text)) == text
    else:
        with pytest.raises(ValueError, match="loopback"):
            parse_tcp_address(text)


@given(host=st.sampled_from(["127.0.0.1", "127.1.2.3", "::1"]), port=st.integers(0, 65535))
def test_addresses_read_back(host: str, port: int) -> None:
    address = TcpAddress(host, port)
    assert parse_address(str(address)) == address
