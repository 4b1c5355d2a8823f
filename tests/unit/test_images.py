"""Where images come from on each kind of site, and what identifies them."""

import json
from pathlib import Path

import pytest
from planning import embedded, other

from tare import images
from tare.config import Mapping
from tare.errors import TareError

PULLED = "login:5000/tare/debian13@sha256:5eed"


def test_a_site_with_a_registry_pulls() -> None:
    assert images.image_tag(embedded(), "debian13") == "login:5000/tare/debian13:latest"
    assert images.fetch_argv(embedded(), "debian13", PULLED) == ["docker", "pull", "--quiet", PULLED]


def test_a_site_without_a_registry_loads_its_archive() -> None:
    assert images.image_tag(other(), "debian13") == "tare/debian13:latest"
    assert images.fetch_argv(other(), "debian13", "sha256:0dd") == [
        *("/opt/docker/bin/docker", "load", "--quiet", "--input", "/sw/images/debian13.tar"),
    ]


def singularity(**keys: object) -> Mapping:
    """A site that has no docker."""
    return embedded(runtimes={"native": {}, "singularity": keys})


@pytest.mark.parametrize(
    ("site", "image", "source"),
    [
        (embedded(), PULLED, f"docker://{PULLED}"),
        (other(), "sha256:0dd", "docker-archive:/sw/images/debian13.tar"),
        (singularity(source="docker://example.org/{userland}"), None, "docker://example.org/debian13"),
    ],
    ids=["registry", "archive", "named"],
)
def test_the_sif_is_built_from_the_very_image_that_docker_runs_unless_the_site_names_another(
    site: Mapping, image: str | None, source: str
) -> None:
    assert images.sif_source(site, "debian13", image) == source


def test_the_sifs_build_is_one_command() -> None:
    assert images.sif_argv(embedded(), "debian13", PULLED, "/b/x.sif") == [
        *("apptainer", "build", "--force", "/b/x.sif", f"docker://{PULLED}"),
    ]
    plain = embedded(runtimes={"singularity": {"no_https": True}, "docker": embedded()["runtimes"]["docker"]})
    assert images.sif_argv(plain, "debian13", PULLED, "/b/x.sif")[3] == "--no-https"


def test_a_site_that_says_nothing_of_its_images_is_told_so() -> None:
    nothing = embedded(runtimes={"docker": {"networks": {"host": {}}}})
    with pytest.raises(TareError) as caught:
        images.fetch_argv(nothing, "debian13", "x")
    assert str(caught.value) == (
        "site 'embedded': runtimes.docker: neither registry nor archive; say where nodes get images from"
    )
    with pytest.raises(TareError) as caught:
        images.sif_source(singularity(), "debian13", None)
    assert str(caught.value) == (
        "site 'embedded': runtimes.singularity: no docker on this site; add source: docker://… or docker-archive:…"
    )


def test_what_is_not_built_has_no_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(images, "DIRECTORY", tmp_path)
    assert images.digests("debian13") == {"docker": None, "singularity": None}


def test_the_notes_beside_the_images_give_their_digests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(images, "DIRECTORY", tmp_path)
    images.docker_note("debian13").write_text(json.dumps({"image": PULLED, "tag": "t"}))
    images.sif_note("debian13").write_text(json.dumps({"source": f"docker://{PULLED}", "sha256": "ab"}))
    assert images.digests("debian13") == {"docker": PULLED, "singularity": f"docker://{PULLED}"}


def test_a_command_that_is_not_there_or_fails_is_one_line() -> None:
    with pytest.raises(TareError) as caught:
        images.run_checked(["no-such-program", "pull"])
    assert str(caught.value) == "no-such-program: cannot be run: No such file or directory; is it installed on this node?"
    with pytest.raises(TareError) as caught:
        images.run_checked(["false", "now"])
    assert str(caught.value) == "false now: exit 1; its own words stand above"
