"""Images: one recipe per userland; the Docker image comes from the site's registry or archive, the SIF is built from it."""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from tare.backends import Argv
from tare.config import Mapping, load_site
from tare.errors import TareError
from tare.files import save
from tare.records import file_sha256
from tare.yamlio import ROOT

DIRECTORY = ROOT / "build" / "images"


def docker_note(userland: str) -> Path:
    """Return the file that says which Docker image stands for a userland."""
    return DIRECTORY / f"{userland}.docker.json"


def sif_path(userland: str) -> Path:
    """Return the Singularity image of a userland."""
    return DIRECTORY / f"{userland}.sif"


def sif_note(userland: str) -> Path:
    """Return the file that says what a Singularity image was built from."""
    return DIRECTORY / f"{userland}.sif.json"


def read_note(path: Path) -> dict[str, Any] | None:
    """Return a note's content, or None while it has not been written."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def archive_path(site: Mapping, userland: str) -> str:
    """Return where a site without a registry keeps the userland's image (made with ``docker save``)."""
    archive = site["runtimes"]["docker"].get("archive")
    if archive is None:
        raise TareError(f"site {site['name']!r}: runtimes.docker: neither registry nor archive; say where nodes get images from")
    return str(archive).format(userland=userland)


def image_tag(site: Mapping, userland: str) -> str:
    """Return the userland's image by name."""
    registry = site["runtimes"]["docker"]["registry"]
    return f"{registry}/tare/{userland}:latest" if registry else f"tare/{userland}:latest"


def fetch_argv(site: Mapping, userland: str, image: str) -> Argv:
    """Return the command that brings an image to a node."""
    docker = site["runtimes"]["docker"]
    if docker["registry"]:
        return [docker["command"], "pull", "--quiet", image]
    return [docker["command"], "load", "--quiet", "--input", archive_path(site, userland)]


def sif_source(site: Mapping, userland: str, image: str | None) -> str:
    """Return what Apptainer builds the SIF from: the very Docker image that the nodes run, where the site has one."""
    source = site["runtimes"]["singularity"].get("source")
    if source is not None:
        return str(source).format(userland=userland)
    if image is None:
        raise TareError(
            f"site {site['name']!r}: runtimes.singularity: no docker on this site; add source: docker://… or docker-archive:…"
        )
    if site["runtimes"]["docker"]["registry"]:
        return f"docker://{image}"
    return f"docker-archive:{archive_path(site, userland)}"


def sif_argv(site: Mapping, userland: str, image: str | None, out: str) -> Argv:
    """Return the command that builds the SIF."""
    singularity = site["runtimes"]["singularity"]
    plain_http = ["--no-https"] if singularity["no_https"] else []
    return [singularity["command"], "build", "--force", *plain_http, out, sif_source(site, userland, image)]


def run_checked(argv: Argv) -> str:
    """Run a command, its progress on stderr; return its stdout; a failure is a TareError."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise TareError(f"{argv[0]}: cannot be run: {error.strerror}; is it installed on this node?") from error
    if done.returncode != 0:
        raise TareError(f"{' '.join(argv)}: exit {done.returncode}; its own words stand above")
    return done.stdout


def fetch(site: Mapping, userland: str) -> None:
    """Bring the Docker image to this node and note its digest."""
    tag = image_tag(site, userland)
    run_checked(fetch_argv(site, userland, tag))
    found = "{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}"
    image = run_checked([site["runtimes"]["docker"]["command"], "image", "inspect", "--format", found, tag]).strip()
    save(docker_note(userland), json.dumps({"image": image, "tag": tag}) + "\n")


def build_sif(site: Mapping, userland: str) -> None:
    """Build the SIF and note what it was built from."""
    docker = read_note(docker_note(userland)) if "docker" in site["runtimes"] else None
    image = docker["image"] if docker else None
    out = sif_path(userland)
    run_checked(sif_argv(site, userland, image, str(out)))
    note = {"source": sif_source(site, userland, image), "sha256": file_sha256(out)}
    save(sif_note(userland), json.dumps(note) + "\n")


def digests(userland: str) -> dict[str, str | None]:
    """Return what identifies the image of each runtime; None while it is not there."""
    docker, sif = read_note(docker_note(userland)), read_note(sif_note(userland))
    return {"docker": docker["image"] if docker else None, "singularity": sif["source"] if sif else None}


def main(argv: list[str]) -> None:
    """Fetch or build the image of a userland for a site."""
    parser = argparse.ArgumentParser(prog="tare image", description=main.__doc__)
    parser.add_argument("verb", choices=["fetch", "build-sif"])
    parser.add_argument("--site", required=True)
    parser.add_argument("--userland", required=True)
    arguments = parser.parse_args(argv)
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    verbs = {"fetch": fetch, "build-sif": build_sif}
    verbs[arguments.verb](load_site(arguments.site), arguments.userland)
