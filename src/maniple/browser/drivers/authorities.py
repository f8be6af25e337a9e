"""The certificate authorities of a company, for a Chromium that is started here.

Chromium brings its own authorities and reads no store of the system. Beside its own it trusts those of the
NSS database in its home directory, so it gets a home with those that the system, or SSL_CERT_FILE, adds.
"""

import shutil
import subprocess
from pathlib import Path

_DATABASE = ".pki/nssdb"
_TRUSTED_FOR_SERVERS = "C,,"
_SECONDS = 60.0


def write_authorities(home: Path, authorities: list[str]) -> str:
    """Write `authorities` (PEM) to a database in `home`; return why that failed, or "".

    Blocks for up to a second. `home` exists.
    """
    certutil = shutil.which("certutil")
    if certutil is None:
        return "there is no certutil here (Debian: apt-get install libnss3-tools)"
    database = home / _DATABASE
    database.mkdir(parents=True)
    try:
        _run(certutil, "-N", "--empty-password", "-d", f"sql:{database}")
        for number, certificate in enumerate(authorities):
            (database / f"{number}.pem").write_text(certificate, encoding="ascii")
        commands = database / "commands"
        commands.write_text("".join(_addition(database, number) for number in range(len(authorities))))
        _run(certutil, "-B", "-i", str(commands), "-d", f"sql:{database}")
    except (OSError, subprocess.SubprocessError) as error:
        return f"certutil failed: {error}"
    return ""


def _addition(database: Path, number: int) -> str:
    return f"-A -n authority-{number} -t {_TRUSTED_FOR_SERVERS} -i {database}/{number}.pem\n"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
