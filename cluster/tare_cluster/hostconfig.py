"""How this machine reaches packages (mirrors, proxies, a CA of its own), handed to the image builds and to nothing else."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from pathlib import Path

# Only what says how to download; not, for example, where a user keeps a cache.
PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
PIP_FILES = (Path("/etc/pip.conf"), Path.home() / ".pip/pip.conf", Path.home() / ".config/pip/pip.conf")
CA_BUNDLES = (Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/pki/tls/certs/ca-bundle.crt"))
CA_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
APT_KEYS = ("Acquire::Check-Valid-Until", "Acquire::Check-Date", "Acquire::Retries", "Acquire::http::Timeout")


def pip_settings() -> dict[str, str]:
    """The settings of pip's own files, then of PIP_* variables, as pip ranks them."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read([*PIP_FILES, *filter(None, [os.environ.get("PIP_CONFIG_FILE")])], encoding="utf-8")
    found = dict(parser["global"]) if parser.has_section("global") else {}
    for key in (*PIP_KEYS, "cert"):
        value = os.environ.get(f"PIP_{key.upper().replace('-', '_')}")
        if value:
            found[key] = value
    return {key: value for key, value in found.items() if key in (*PIP_KEYS, "cert")}


def ca_bundle(settings: dict[str, str]) -> Path | None:
    """The certificates this machine trusts, with those of a proxy that looks into TLS."""
    named = [settings.get("cert"), *(os.environ.get(name) for name in CA_VARIABLES)]
    candidates = [*(Path(name) for name in named if name), *CA_BUNDLES]
    return next((path for path in candidates if path.is_file()), None)


def pip_conf(settings: dict[str, str], certificates: str | None) -> str:
    """A pip.conf for the build; values over several lines stay indented as pip wants them."""
    kept = {key: value for key, value in settings.items() if key in PIP_KEYS}
    if certificates:
        kept["cert"] = certificates
    return "[global]\n" + "".join(f"{key} = {value.replace(chr(10), chr(10) + '    ')}\n" for key, value in kept.items())


def _apt(arguments: list[str]) -> str:
    if not shutil.which(arguments[0]):
        return ""
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout


def apt_options() -> list[str]:
    """Settings as `-o name=value` words."""
    words = []
    for line in _apt(["apt-config", "dump", "--format", "%f=%v%n", *APT_KEYS]).splitlines():
        if not line.endswith("="):
            words += ["-o", line]
    return words


def http_proxy() -> str | None:
    """What the environment says Docker hands in by itself; what only apt knows is handed in by us."""
    if os.environ.get("http_proxy"):
        return os.environ["http_proxy"]
    return _apt(["apt-config", "dump", "--format", "%v%n", "Acquire::http::Proxy"]).strip() or None


def debian_mirrors(suite: str) -> list[str]:
    """Source lines for another Debian suite from the mirrors this machine uses, when it is a Debian; else none."""
    main = _repositories("Debian")
    security = _repositories("Debian-Security")
    entries = [f"deb {uri} {suite} main" for uri in main[:1]] + [f"deb {uri} {suite}-updates main" for uri in main[:1]]
    return entries + [f"deb {uri} {suite}-security main" for uri in security[:1]] if main else []


def _repositories(label: str) -> list[str]:
    found = _apt(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Label: {label}"])
    return list(dict.fromkeys(found.split()))
