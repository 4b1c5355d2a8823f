"""The images: bases, the node, and two per userland of containers/userlands.ini. Rebuilt when their inputs change."""

from __future__ import annotations

import configparser
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import argv, hostconfig
from .checkout import Checkout
from .errors import ClusterError
from .machine import install
from .pins import pins
from .shell import lines, run, run_visibly, say, succeeds

PULL_SECONDS = 60.0
NOT_UNPACKED = ("doc", "locale", "man")  # as in Debian's own slim images
INPUTS_LABEL = "tare.inputs"
STAGE_LABEL = "tare.stage"  # on what a build needs on its way, kept as its cache
REPOSITORY = "tare"
# Where the build finds what the host handed in (cluster/node/Dockerfile).
CERTIFICATES_IN_BUILD = "/tmp/pip/certificates.pem"


@dataclass(frozen=True)
class Base:
    """What an image starts from: pulled, or made from a Debian suite where no image registry answers."""

    name: str
    pull: str
    suite: str  # empty: it can only be pulled

    @property
    def tag(self) -> str:
        return f"{REPOSITORY}/base:{self.name}"


@dataclass(frozen=True)
class Image:
    """An image of ours and what it is built from."""

    tag: str
    folder: Path
    base: Base
    requirements: str = ""  # Python packages, for images that have any
    target: str = ""  # the stage of the recipe; empty: its last
    arguments: tuple[str, ...] = ()  # NAME=value of the recipe's ARGs

    @property
    def digest(self) -> str:
        """Of the recipe: file names, modes and contents, what it is told, and the pins."""
        total = hashlib.sha256(self.requirements.encode())
        for word in (self.target, *self.arguments):
            total.update(word.encode())
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            executable = bool(path.stat().st_mode & 0o100)
            total.update(f"{path.relative_to(self.folder)} {executable} {path.stat().st_size}\n".encode() + path.read_bytes())
        return total.hexdigest()[:16]


NODE_BASE = Base("debian13", "debian:trixie-slim", "trixie")


@dataclass(frozen=True)
class Userland:
    """One section of containers/userlands.ini."""

    runtime: Image
    builder: Image
    every_time: bool


def node_image(checkout: Checkout) -> Image:
    packages = pins((checkout.root / "pyproject.toml").read_text(encoding="utf-8"))
    return Image(f"{REPOSITORY}/node:latest", checkout.root / "cluster/node", NODE_BASE, "\n".join(packages) + "\n")


def userlands(checkout: Checkout) -> dict[str, Userland]:
    """Of containers/userlands.ini; a new userland is a new section and nothing else."""
    path = checkout.root / "containers/userlands.ini"
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(path.read_text(encoding="utf-8"), str(path))
    return {name: _userland(name, dict(parser[name]), checkout) for name in parser.sections()}


def _userland(name: str, section: dict[str, str], checkout: Checkout) -> Userland:
    try:
        folder = checkout.root / "containers" / section.pop("recipe")
        base = Base(section.pop("base"), section.pop("pull"), section.pop("suite"))
        every_time = section.pop("every_time") == "yes"
    except KeyError as error:
        raise ClusterError(f"containers/userlands.ini: {name}: {error} is missing; its head says what must be there") from error
    arguments = tuple(f"{key.upper()}={value}" for key, value in section.items())
    return Userland(
        Image(f"{REPOSITORY}/{name}:latest", folder, base, target="runtime", arguments=arguments),
        Image(f"{REPOSITORY}/{name}-build:latest", folder, base, target="builder", arguments=arguments),
        every_time,
    )


def runtime_images(checkout: Checkout) -> list[Image]:
    """Those that every cluster has."""
    return [userland.runtime for userland in userlands(checkout).values() if userland.every_time]


def images_of(checkout: Checkout, names: list[str]) -> list[Image]:
    """What measuring in these userlands takes: the runtime images, and the builders that compile for them."""
    known = userlands(checkout)
    for name in names:
        if name not in known:
            raise ClusterError(f"userlands: unknown '{name}'; known: {', '.join(known)}; they stand in containers/userlands.ini")
    return [image for name in names for image in (known[name].runtime, known[name].builder)]


def ensure(checkout: Checkout) -> None:
    ensure_built((node_image(checkout), *runtime_images(checkout)), checkout)


def ensure_built(wanted: Iterable[Image], checkout: Checkout) -> None:
    for image in [image for image in wanted if not is_built(image)]:
        ensure_base(image.base)
        build(image, checkout)


def is_built(image: Image) -> bool:
    return inspect(image.tag, "{{index .Config.Labels " + json.dumps(INPUTS_LABEL) + "}}") == image.digest


def inspect(tag: str, what: str) -> str | None:
    done = subprocess.run(["docker", "image", "inspect", "--format", what, tag], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def ensure_base(base: Base) -> None:
    """From an image registry where one answers, else made here from the package mirror."""
    if inspect(base.tag, "{{.Id}}"):
        return
    say(f"base image: pulling {base.pull}")
    if succeeds(["docker", "pull", base.pull], timeout=PULL_SECONDS):
        run(["docker", "tag", base.pull, base.tag])
        return
    if not base.suite:
        raise ClusterError(
            f"base image: {base.pull}: no image registry answers, and no package mirror can make it; pull it by hand"
        )
    say(f"base image: no image registry answers; making {base.suite} with mmdebstrap")
    install("mmdebstrap", ["mmdebstrap", "debian-archive-keyring"])
    with tempfile.TemporaryDirectory(prefix="tare-base-") as folder:
        archive = Path(folder) / "base.tar"
        options = [f"--aptopt={as_configuration(word)}" for word in hostconfig.apt_options() if word != "-o"]
        # Options of this machine's apt must not stay in the image.
        forget = ["--customize-hook=rm -f $1/etc/apt/apt.conf.d/99mmdebstrap"] if options else []
        slim = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in NOT_UNPACKED]
        slim.append("--dpkgopt=path-include=/usr/share/doc/*/copyright")
        mirrors = hostconfig.debian_mirrors(base.suite)
        run_visibly(["mmdebstrap", "--variant=minbase", *options, *forget, *slim, base.suite, str(archive), *mirrors])
        run(["docker", "import", str(archive), base.tag])


def as_configuration(setting: str) -> str:
    """`name=value`, as apt's -o takes it, in the syntax of apt's configuration files, which mmdebstrap wants."""
    name, _, value = setting.partition("=")
    return f'{name} "{value}"'


def build(image: Image, checkout: Checkout) -> None:
    say(f"building {image.tag} (its recipe is new or has changed)")
    with tempfile.TemporaryDirectory(prefix="tare-build-") as name:
        folder = Path(name) / "context"
        shutil.copytree(image.folder, folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        if image.requirements:
            _hand_in_python(folder / "pip", image.requirements)
        options = " ".join(hostconfig.apt_options())
        label = f"{INPUTS_LABEL}={image.digest}"
        told = (f"BASE={image.base.tag}", f"APT_OPTIONS={options}", *image.arguments)
        run_visibly(argv.image_build(image.tag, str(folder), told, image.target, hostconfig.http_proxy(), label))
    run(["docker", "image", "prune", "--force", "--filter", "label=" + INPUTS_LABEL])
    say(f"{image.tag} is built")


def _hand_in_python(folder: Path, requirements: str) -> None:
    """What the build needs to install Python packages: which, and how this machine gets them."""
    folder.mkdir()
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    settings = hostconfig.pip_settings()
    bundle = hostconfig.ca_bundle(settings)
    if bundle:
        shutil.copy(bundle, folder / Path(CERTIFICATES_IN_BUILD).name)
    text = hostconfig.pip_conf(settings, CERTIFICATES_IN_BUILD if bundle else None)
    (folder / "pip.conf").write_text(text, encoding="utf-8")


def push(image: Image, login: str, registry: str) -> bool:
    """Puts an image into the login node's registry, unless that very image is there. Says whether it did."""
    name = f"{registry}/{image.tag}"
    there = ["skopeo", "inspect", "--config", f"docker://{name}"]
    done = subprocess.run(argv.node_exec(login, there), capture_output=True, text=True, check=False)
    if done.returncode == 0 and json.loads(done.stdout)["config"].get("Labels", {}).get(INPUTS_LABEL) == image.digest:
        return False
    say(f"putting {image.tag} into the cluster's registry")
    copy = ["skopeo", "copy", "--quiet", "--dest-compress-level", "1", "docker-archive:/dev/stdin", f"docker://{name}"]
    save = subprocess.Popen(["docker", "save", image.tag], stdout=subprocess.PIPE)
    receive = argv.node_exec(login, copy, flags=("--interactive",))
    put = subprocess.run(receive, stdin=save.stdout, capture_output=True, text=True, check=False)
    if save.wait() != 0 or put.returncode != 0:
        raise ClusterError(f"cluster: registry: {image.tag} was not stored: {put.stderr.strip()}; run make up again")
    return True


def remove_all(checkout: Checkout) -> None:
    """`make clean`: everything this project built or pulled. An image goes only after those that build on it."""
    while True in [succeeds(["docker", "image", "rm", "--force", image]) for image in our_images()]:
        pass
    for base in bases(checkout):
        succeeds(["docker", "image", "rm", base.pull])


def bases(checkout: Checkout) -> set[Base]:
    return {NODE_BASE, *(userland.runtime.base for userland in userlands(checkout).values())}


def our_images() -> list[str]:
    filters = (f"reference={REPOSITORY}/*", f"label={INPUTS_LABEL}", f"label={STAGE_LABEL}")
    found = [image for one in filters for image in lines(["docker", "image", "ls", "--quiet", "--filter", one])]
    return list(dict.fromkeys(found))
