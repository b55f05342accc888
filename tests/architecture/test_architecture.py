"""Rules of the house, as tests: who may import what, where randomness lives, what is public."""

import ast
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import dp_sips
from dp_sips.mechanisms import MECHANISMS

ROOT = Path(dp_sips.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in FILES}

# What each part may import of the package. Errors and progress know nobody; privacy knows only
# errors; sources do not know engines; nobody but the command line knows everything.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "progress": set(),
    "room": {"errors"},
    "temporaries": set(),
    "parameters": {"errors"},
    "mechanisms": {"errors", "privacy"},
    "privacy": {"errors"},
    "text": {"errors"},
    "sources": {"errors", "progress", "room", "text"},
    "formats": {"errors"},
    "output": {"errors", "formats", "temporaries"},
    "synthetic": {"errors", "progress"},
    "tokens": {"errors", "formats", "output", "progress", "room", "sources", "text"},
    "rounds": {"privacy"},
    "chances": {"privacy", "rounds"},
    "planners": {"errors", "mechanisms", "privacy", "rounds"},
    "plan": {
        "chances", "errors", "explain", "mechanisms", "parameters", "planners", "privacy", "rounds",
    },
    "explain": {"errors", "plan", "privacy", "rounds"},
    "selection": {"plan", "privacy"},
    "engines": {"errors", "privacy", "progress", "room", "sources"},
    "sorting": {"engines"},
    "running": {"engines", "privacy", "rounds"},
    "select": {
        "engines", "errors", "mechanisms", "parameters", "plan", "privacy", "progress", "room",
        "running", "selection", "sorting", "sources", "text",
    },
    "__init__": {
        "engines", "errors", "mechanisms", "plan", "privacy", "rounds", "select", "selection",
        "text", "tokens",
    },
    "__main__": {"cli"},
}  # fmt: skip
# The command line may use all but the inside of engines; it is nobody's to import.
ALLOWED["cli"] = {*ALLOWED} - {"explain", "sorting", "__main__"}

HEAVY = {
    "pyarrow", "pandas", "polars", "duckdb", "pyspark", "scipy", "tqdm", "cryptography", "nltk",
    "dp_sips.engines", "dp_sips.sources", "dp_sips.select", "dp_sips.cli",
    "dp_sips.engines.memory.kernels",
}  # fmt: skip

# The only files that may use each library that is slow to import, or optional.
HOMES = {
    "cryptography": {"privacy/noise.py"},
    "pandas": {"sources/pandas_frames.py"},
    "polars": {"sources/polars_frames.py"},
    "duckdb": {"sources/duckdb_relations.py"},
    "tqdm": {"progress.py"},
    "nltk": {"text/tokenizer.py"},
}  # fmt: skip


def imported(tree: ast.AST) -> list[str]:
    """Return every module that is imported anywhere in a file, in full."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def part(path: str) -> str:
    return path.split("/", maxsplit=1)[0].removesuffix(".py")


def at_the_top(tree: ast.Module) -> list[str]:
    """Return what is imported when the module is."""
    return imported(
        ast.Module([n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))], [])
    )


class TestImports:
    def test_point_one_way(self) -> None:
        found: dict[str, set[str]] = defaultdict(set)
        for path, tree in TREES.items():
            for name in imported(tree):
                top, *rest = name.split(".")
                if top != "dp_sips":
                    continue
                target = rest[0] if rest and rest[0] in ALLOWED else "__init__"
                if target != part(path):
                    found[part(path)].add(target)
        assert set(found) <= set(ALLOWED), "a new part needs a line in ALLOWED"
        for name, targets in found.items():
            assert targets <= ALLOWED[name], f"{name} must not import {targets - ALLOWED[name]}"

    def test_have_no_circle_but_words(self) -> None:
        """plan.explain() asks explain.py, which reads plans; there is no other circle."""
        graph = {name: set(targets) for name, targets in ALLOWED.items()}
        graph["plan"].discard("explain")
        graph["cli"].discard("__init__")
        while leaves := {name for name, targets in graph.items() if not targets & graph.keys()}:
            for leaf in leaves:
                del graph[leaf]
        assert graph == {}

    def test_privacy_rests_on_little(self) -> None:
        libraries = {"numpy", "scipy", "cryptography", "dp_sips"}
        for path, tree in TREES.items():
            if part(path) != "privacy":
                continue
            for name in imported(tree):
                top = name.split(".")[0]
                assert top in sys.stdlib_module_names | libraries, (path, name)
                if top == "dp_sips":
                    assert name.startswith(("dp_sips.privacy.", "dp_sips.errors.")), (path, name)
                if top == "scipy":
                    assert name.startswith("scipy.special."), (path, name)

    @pytest.mark.parametrize("library", HOMES)
    def test_libraries_have_a_home(self, library: str) -> None:
        users = {
            path
            for path, tree in TREES.items()
            if any(name.split(".")[0] == library for name in imported(tree))
        }
        assert users == HOMES[library]

    def test_scipy_is_for_privacy_and_plans(self) -> None:
        for path, tree in TREES.items():
            if part(path) not in {"privacy", "chances"}:
                assert not any(name.split(".")[0] == "scipy" for name in imported(tree)), path

    def test_engines_do_not_know_each_other(self) -> None:
        """Spark's workers run the compiled loops of the memory engine, and nothing else of it."""
        loops = ("dp_sips.engines.memory.kernels", "dp_sips.engines.memory.splitting")
        for path, tree in TREES.items():
            for name in imported(tree):
                if path.startswith("engines/memory/"):
                    assert not name.startswith("dp_sips.engines.reference"), path
                if path == "engines/reference.py" or path.startswith("engines/spark/"):
                    known = loops if path.startswith("engines/spark/") else ()
                    other = name.startswith("dp_sips.engines.memory")
                    assert not other or name.startswith(known), (path, name)
                if path.startswith("engines/"):
                    assert not name.startswith("dp_sips.privacy.budget"), path
                    assert not name.startswith("dp_sips.privacy.threshold"), path

    def test_pyspark_is_only_in_what_is_called_spark(self) -> None:
        for path, tree in TREES.items():
            if not path.startswith(("engines/spark", "sources/spark")):
                assert not any(name.split(".")[0] == "pyspark" for name in imported(tree)), path


class TestRandomness:
    MODULES = frozenset({"secrets", "random", "uuid"})
    HOME = "privacy/noise.py"
    # Data of people who do not exist.
    GENERATED = frozenset({"synthetic.py", "cli/searches.py"})

    @pytest.mark.parametrize("path", TREES)
    def test_is_only_in_noise(self, path: str) -> None:
        if path == self.HOME:
            return
        for name in imported(TREES[path]):
            assert name.split(".")[0] not in self.MODULES, name
            assert "numpy.random" not in name
            assert name != "os.urandom"
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"urandom", "getrandom", "SystemRandom"}
                if node.attr == "random" and isinstance(node.value, ast.Name):
                    assert path in self.GENERATED

    def test_noise_takes_it_from_the_system(self) -> None:
        names = imported(TREES[self.HOME])
        assert "secrets" in names
        assert not {"random", "uuid"} & set(names)
        attributes = {
            f"{n.value.id}.{n.attr}"
            for n in ast.walk(TREES[self.HOME])
            if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
        }
        assert "secrets.token_bytes" in attributes
        assert "np.random" not in attributes


def loaded_by(statement: str) -> set[str]:
    script = f"import sys, json\n{statement}\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout))


class TestLaziness:
    def test_the_package_loads_nothing_heavy(self) -> None:
        assert not HEAVY & loaded_by("import dp_sips")

    def test_a_selection_loads_only_what_it_needs(self) -> None:
        modules = loaded_by(
            "import dp_sips; dp_sips.select_partitions({1: ['a']}, rho=1, delta=0.1)"
        )
        # Not pandas: pyarrow itself looks for it, when it makes an array.
        optional = {"polars", "duckdb", "pyspark", "tqdm", "nltk", "dp_sips.engines.reference"}
        optional |= {"dp_sips.sources.pandas_frames", "dp_sips.cli"}
        assert not optional & modules
        assert "dp_sips.engines.memory.kernels" in modules

    def test_the_reference_loads_no_compiled_loops(self) -> None:
        modules = loaded_by(
            "import dp_sips\n"
            "dp_sips.select_partitions({1: ['a']}, rho=1, delta=0.1, engine='reference')"
        )
        assert "dp_sips.engines.memory.kernels" not in modules

    def test_slow_libraries_are_imported_where_they_are_used(self) -> None:
        for path in ("plan.py", "chances.py", *(p for p in TREES if part(p) == "privacy")):
            tops = {name.split(".")[0] for name in at_the_top(TREES[path])}
            assert not tops & {"scipy", "cryptography", "pyarrow"}, path


class TestSurface:
    def test_all_is_pinned(self) -> None:
        assert dp_sips.__all__ == [
            "AdaptiveRound",
            "Budget",
            "Cumulative",
            "DpSipsError",
            "Dpsu",
            "EvidenceRound",
            "FoldRound",
            "Guarantee",
            "Gw",
            "InputError",
            "LaplaceRound",
            "Mad",
            "Mad2R",
            "MemoryEngine",
            "OutOfMemoryError",
            "OutputError",
            "Plan",
            "PolicyLaplace",
            "Round",
            "RuleRound",
            "Selection",
            "Single",
            "Sips",
            "SipsRule",
            "UsageError",
            "WeightedGaussian",
            "plan",
            "select_partitions",
            "text",
            "write_tokens",
        ]

    def test_all_is_there(self) -> None:
        for name in dp_sips.__all__:
            assert getattr(dp_sips, name).__doc__
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            _ = dp_sips.nothing

    def test_is_typed(self) -> None:
        assert (ROOT / "py.typed").exists()

    @pytest.mark.parametrize("name", MECHANISMS)
    def test_mechanisms_state_their_guarantee(self, name: str) -> None:
        assert "Guarantee: " in (MECHANISMS[name].__doc__ or "")

    def test_what_touches_privacy_states_its_guarantee(self) -> None:
        for path, tree in TREES.items():
            if part(path) == "privacy" and path not in {
                "privacy/__init__.py", "privacy/search.py", "privacy/guarantee.py"
            }:  # fmt: skip
                words = " ".join(
                    ast.get_docstring(node) or ""
                    for node in ast.walk(tree)
                    if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
                )
                assert "Guarantee:" in words, path


class TestHouse:
    def test_files_are_short(self) -> None:
        for path in (*FILES, *ROOT.rglob("*.pyx")):
            assert len(path.read_text("utf-8").splitlines()) <= 500, path

    @pytest.mark.parametrize("path", [path for path in TREES if part(path) != "cli"])
    def test_the_library_is_silent(self, path: str) -> None:
        """No printing and no logging: nothing about the data can slip out that way."""
        calls = {
            node.func.id
            for node in ast.walk(TREES[path])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "input", "breakpoint", "eval", "exec"}
        tops = {name.split(".")[0] for name in imported(TREES[path])}
        assert not tops & {"logging", "warnings", "pdb", "pickle"}

    def test_nothing_is_logged_anywhere(self) -> None:
        tops = {name.split(".")[0] for tree in TREES.values() for name in imported(tree)}
        assert "logging" not in tops
