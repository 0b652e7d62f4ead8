"""Token counts by tiktoken, the reference.

tiktoken downloads its vocabularies. The wheel of bpe-openai holds the same files gzipped, so they are put
where tiktoken looks first: a cache folder, under the SHA-1 of their original address. The address and the
SHA-256 that the file must have are asked of tiktoken's own definition of the encoding; with another file
tiktoken would go to the network, so that is refused here.
"""

import gzip
import hashlib
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import tiktoken
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

ENCODINGS = ("o200k_base", "cl100k_base")


def _wanted_file(name: str) -> tuple[str, str]:
    """Address and SHA-256 of the vocabulary, as the definition of the encoding asks for it."""
    asked: list[tuple[str, str]] = []

    def record(address: str, expected_hash: str) -> dict[bytes, int]:
        asked.append((address, expected_hash))
        return {}

    with mock.patch.object(openai_public, "load_tiktoken_bpe", record):
        getattr(openai_public, name)()
    (wanted,) = asked
    return wanted


@cache
def reference_encoding(name: str) -> tiktoken.Encoding:
    """The encoding of that name, made without a network."""
    address, expected_hash = _wanted_file(name)
    # Found without importing the package, which unpacks all its vocabularies and warns.
    packed = metadata.distribution("bpe-openai").locate_file(f"bpe_openai/data/{name}.tiktoken.gz")
    vocabulary = gzip.decompress(Path(str(packed)).read_bytes())
    assert hashlib.sha256(vocabulary).hexdigest() == expected_hash, f"another vocabulary of {name}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / hashlib.sha1(address.encode()).hexdigest()).write_bytes(vocabulary)
        with mock.patch.dict("os.environ", {"TIKTOKEN_CACHE_DIR": folder}):
            definition: dict[str, Any] = getattr(openai_public, name)()
    return tiktoken.Encoding(**definition)


def reference_count(text: str, encoding: str) -> int:
    """Tokens of a text; what looks like a special token is text."""
    return len(reference_encoding(encoding).encode_ordinary(text))
