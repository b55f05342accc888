"""What an error of the system or of a library is called in messages."""

import errno
import os
import socket

import pyarrow as pa
import pytest

from dp_sips.sources.reasons import reason

NO_LOGIN = (
    "Unknown error: Check for Hierarchical Namespace support on 'https://SECRET.blob.core.windows."
    "net/box' failed: N5Azure4Core11Credentials23AuthenticationExceptionE: Failed to get token "
    "from DefaultAzureCredential."
)


def test_the_system_says_it_by_number() -> None:
    assert reason(OSError(errno.EACCES, "SECRET")) == os.strerror(errno.EACCES)


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_a_resolver_has_numbers_of_its_own(number: int) -> None:
    assert reason(socket.gaierror(number, "SECRET")) == "no such host, or no connection"
    assert reason(OSError(-2, "SECRET"), "no connection") == "no connection (OSError)"


def test_azure_is_told_by_its_exceptions() -> None:
    said = reason(pa.ArrowException(NO_LOGIN))
    assert said.endswith("check the network, the account and the credentials")
    assert "SECRET" not in said


def test_a_file_that_is_not_whole_may_show_a_value_later_on() -> None:
    assert reason(OSError("Truncated compressed stream: SECRET")).endswith("copy it again")
    assert "copy" not in reason(pa.ArrowInvalid("a row: Truncated compressed stream"))
