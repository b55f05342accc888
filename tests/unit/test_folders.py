"""A folder appears whole or not at all, and never in place of what is somebody else's."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dp_sips import OutputError, UsageError
from dp_sips.folders import check_folder, write_folder

PARTS = "part-*"


def fill(text: str = "new") -> Callable[[Path], object]:
    return lambda folder: (folder / "part-0").write_text(text)


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("empty", [True, False])
def test_a_new_or_an_empty_folder_is_filled(tmp_path: Path, *, empty: bool) -> None:
    if empty:
        (tmp_path / "d").mkdir()
    check_folder(tmp_path / "d", holding=PARTS)
    write_folder(tmp_path / "d", fill(), holding=PARTS)
    assert content(tmp_path) == {"d/part-0": "new"}


def test_one_that_holds_files_is_replaced_when_asked(tmp_path: Path) -> None:
    write_folder(tmp_path / "d", fill("old"), holding=PARTS)
    (tmp_path / "d" / "part-1").write_text("more")
    with pytest.raises(UsageError, match=r"d exists: .* --force"):
        check_folder(tmp_path / "d", holding=PARTS)
    check_folder(tmp_path / "d", holding=PARTS, overwrite=True)
    write_folder(tmp_path / "d", fill(), holding=PARTS, overwrite=True)
    assert content(tmp_path) == {"d/part-0": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_other_files_are_never_removed(tmp_path: Path) -> None:
    (tmp_path / "part-0").touch()
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"holds other files than part-\*, and is not replaced"):
        check_folder(tmp_path, holding=PARTS, overwrite=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/d", "there is no folder"),
        ("file", "is not a folder: name another"),
        ("file/d", "there is no folder"),
        ("n" * 300, "cannot be written: File name too long"),
    ],
)
def test_impossible_places(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=message):
        check_folder(tmp_path / name, holding=PARTS, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_place_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Tests may run as root, whom no permission stops.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UsageError, match="cannot be written: Permission denied"):
        check_folder(tmp_path / "d", holding=PARTS)


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["filling", "keeping", "naming"])
def test_any_failure_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    failure: BaseException,
    *,
    old: bool,
) -> None:
    path, rename, renames = tmp_path / "d", Path.rename, iter(["keeping", "naming"][not old :])
    if old:
        write_folder(path, fill("old"), holding=PARTS)

    def fail(folder: Path) -> None:
        fill("half")(folder)
        if step == "filling":
            raise failure

    def renamed(self: Path, target: Path) -> Path:
        done = rename(self, target)  # an interrupt can come right after it
        if next(renames, None) == step:
            raise failure
        return done

    monkeypatch.setattr(Path, "rename", renamed)
    if step == "keeping" and not old:
        write_folder(path, fail, holding=PARTS, overwrite=True)
        return
    with pytest.raises((OutputError, KeyboardInterrupt), match=r"d could not be written: No|^$"):
        write_folder(path, fail, holding=PARTS, overwrite=True)
    assert content(tmp_path) == ({"d/part-0": "old"} if old else {})
    assert [path.name for path in tmp_path.iterdir()] == (["d"] if old else [])


def test_a_folder_that_appears_is_not_replaced(tmp_path: Path) -> None:
    def appear(folder: Path) -> None:
        fill()(folder)
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "part-0").write_text("theirs")

    with pytest.raises(OutputError, match=r"d exists: name another folder"):
        write_folder(tmp_path / "d", appear, holding=PARTS)
    assert content(tmp_path) == {"d/part-0": "theirs"}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_folder(tmp_path / "link", fill(), holding=PARTS)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "part-0").read_text() == "new"
