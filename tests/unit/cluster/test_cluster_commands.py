"""The exact command lines and files that the cluster is made of."""

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from tare_cluster import argv, configs, containers, firewall, hostconfig, images, services, sitefile
from tare_cluster.checkout import Checkout
from tare_cluster.errors import ClusterError
from tare_cluster.layout import Cpu, Layout, Site, make_layout
from tare_cluster.pins import pins

ROOT = Path(__file__).resolve().parents[3]


def embedded() -> dict[str, object]:
    data = yaml.safe_load((ROOT / "config/sites/embedded.yaml").read_text(encoding="utf-8"))
    assert isinstance(data, dict)
    return data


def site() -> Site:
    return sitefile.parse(embedded(), "embedded.yaml")


def two_nodes() -> Layout:
    return make_layout(site(), [Cpu(0, (0, 0)), Cpu(1, (0, 1))], 2)


def test_a_node_is_created_with_named_capabilities_and_its_own_cpus() -> None:
    node = two_nodes().compute[1]
    command = argv.node_create(node, site().links, "tare/node:latest", "/checkout", "unconfined")
    text = " ".join(command)
    assert text.startswith("docker create --name tare-node02 --hostname node02 --label tare.checkout=/checkout ")
    assert " --network tare-ethernet --ip 172.30.0.12 --cpuset-cpus 1 --init --device /dev/fuse " in text
    assert text.endswith(
        " --volume /checkout:/tare --volume tare-config:/etc/tare --volume tare-home:/home"
        " --volume tare-node02-state:/var/lib/docker --workdir /tare tare/node:latest"
    )
    assert "--privileged" not in command
    assert command == argv.node_create(node, site().links, "tare/node:latest", "/checkout", "unconfined")


def test_networks_have_no_way_out() -> None:
    command = argv.network_create(site().links[1], "/checkout")
    assert "--internal" in command
    assert command[-1] == "tare-fast"


def test_slurm_is_told_the_true_cpus_and_the_one_machine() -> None:
    lines = configs.slurm_conf(site(), two_nodes(), 16000).splitlines()
    assert "Licenses=machine:2" in lines
    assert "JobRequeue=0" in lines
    assert "PartitionName=batch Nodes=node01,node02 Default=YES MaxTime=INFINITE State=UP" in lines
    node = "NodeAddr=172.30.0.12 CPUs=1 Sockets=1 CoresPerSocket=1 ThreadsPerCore=1 RealMemory=8000 State=UNKNOWN"
    assert f"NodeName=node02 {node}" in lines


def test_what_up_found_is_yaml_that_the_workflow_can_merge() -> None:
    found = yaml.safe_load(configs.site_yaml(make_layout(site(), [Cpu(0, (0, 0)), Cpu(1, (0, 1))], 4)))
    assert found == {"nodes": 4, "cpus_per_node": 1, "shared_cpus": True}


def test_only_links_with_a_rate_are_shaped() -> None:
    data = embedded()
    assert 'LINKS=""\n' in configs.node_env(site(), two_nodes(), (1000, 1000), map_owner=True)
    data["interconnects"]["ethernet"]["link"] = "1gbit"  # type: ignore[index]
    shaped = configs.node_env(sitefile.parse(data, "x.yaml"), two_nodes(), (1000, 1000), map_owner=True)
    assert 'LINKS="eth0=1gbit"\n' in shaped


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("interconnects.ethernet.link", "fast", "interconnects.ethernet.link: 'fast' is no rate"),
        ("interconnects.fast.interface", "ib0", "interconnects.fast.interface: 'ib0'; Docker names it eth1"),
        ("runtimes.docker.networks.macvlan.subnet", "192.168.7.0/24", "192.168.7.0/24 is not inside 172.30.0.0/20"),
        ("scheduler", {}, "KeyError\\('partition'\\) is missing or wrong"),
    ],
)
def test_a_site_file_that_the_cluster_cannot_be_made_from_is_an_error(path: str, value: object, message: str) -> None:
    data = json.loads(json.dumps(embedded()))
    *parents, last = path.split(".")
    place = data
    for key in parents:
        place = place[key]
    place[last] = value
    with pytest.raises(ClusterError, match=f"x.yaml: .*{message}"):
        sitefile.parse(data, "x.yaml")


SAVED = """\
*filter
:INPUT ACCEPT [10:1000]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
:MINE - [0:0]
-A INPUT -p tcp --dport 22 -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A FORWARD -i wg0 -j MINE
-A DOCKER-USER -j RETURN
COMMIT
"""


def test_dockers_chains_and_policy_go_and_other_peoples_rules_stay() -> None:
    assert firewall.without_docker(SAVED, "ACCEPT").splitlines() == [
        "*filter",
        ":INPUT ACCEPT [10:1000]",
        ":FORWARD ACCEPT [0:0]",
        ":MINE - [0:0]",
        "-A INPUT -p tcp --dport 22 -j ACCEPT",
        "-A FORWARD -i wg0 -j MINE",
        "COMMIT",
    ]


def test_pips_settings_name_the_builds_certificates_and_not_the_hosts() -> None:
    settings = {"index-url": "https://pip.example/simple", "cert": "/host/ca.pem", "extra-index-url": "https://a\nhttps://b"}
    text = hostconfig.pip_conf(settings, "/tmp/pip/certificates.pem")
    assert text == (
        "[global]\nindex-url = https://pip.example/simple\nextra-index-url = https://a\n    https://b\n"
        "cert = /tmp/pip/certificates.pem\n"
    )
    assert hostconfig.pip_conf({}, None) == "[global]\n"


def test_an_image_is_known_by_its_recipe_and_its_pins(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    base = images.Base("b", "b:1", "")
    before = images.Image("tare/x:latest", tmp_path, base, "a==1\n").digest
    assert images.Image("tare/x:latest", tmp_path, base, "a==1\n").digest == before
    other_pins = images.Image("tare/x:latest", tmp_path, base, "a==2\n").digest
    other_stage = images.Image("tare/x:latest", tmp_path, base, "a==1\n", "builder").digest
    other_compiler = images.Image("tare/x:latest", tmp_path, base, "a==1\n", arguments=("COMPILERS=gcc-9",)).digest
    (tmp_path / "Dockerfile").chmod(0o755)
    other_mode = images.Image("tare/x:latest", tmp_path, base, "a==1\n").digest
    assert len({before, other_pins, other_stage, other_compiler, other_mode}) == 5


def test_pins_are_those_that_a_toml_parser_finds() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    assert pins(text) == data["project"]["dependencies"] + data["dependency-groups"]["dev"]


def test_pins_do_not_depend_on_the_rest_of_the_file() -> None:
    text = '[project]\ndependencies = [\n  "a==1",  # why\n]\n[dependency-groups]\nother = [\n  "b",\n]\ndev = [\n  "c==2",\n]\n'
    assert pins(text) == pins(text + '[tool.x]\ndev = [\n  "d",\n]\n') == ["a==1", "c==2"]


def test_a_userland_is_two_stages_of_one_recipe() -> None:
    runtime, builder = images.images_of(Checkout(ROOT), ["debian11"])
    assert (runtime.tag, runtime.target) == ("tare/debian11:latest", "runtime")
    assert (builder.tag, builder.target) == ("tare/debian11-build:latest", "builder")
    assert runtime.folder == builder.folder == ROOT / "containers/packages"
    assert "COMPILERS=gcc-9" in builder.arguments


def test_only_the_nodes_own_userland_is_built_every_time() -> None:
    assert [image.tag for image in images.runtime_images(Checkout(ROOT))] == ["tare/debian13:latest"]


def test_every_userland_has_a_recipe() -> None:
    for userland in images.userlands(Checkout(ROOT)).values():
        assert (userland.runtime.folder / "Dockerfile").is_file()


def test_an_unknown_userland_names_the_known_ones() -> None:
    with pytest.raises(ClusterError, match=r"userlands: unknown 'debian10'; known: debian13, .*userlands.ini"):
        images.images_of(Checkout(ROOT), ["debian10"])


def test_a_userland_with_a_key_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers/userlands.ini").write_text("[x]\nrecipe = packages\nbase = x\nsuite =\nevery_time = no\n")
    with pytest.raises(ClusterError, match=r"userlands.ini: x: 'pull' is missing"):
        images.userlands(Checkout(tmp_path))


def test_apts_settings_are_handed_to_mmdebstrap_in_its_syntax() -> None:
    assert images.as_configuration("Acquire::Check-Valid-Until=false") == 'Acquire::Check-Valid-Until "false"'


def test_an_image_is_built_from_its_base_and_stage() -> None:
    found = argv.image_build(
        "tare/x:latest", "/c", ("BASE=tare/base:x", "GCC=9"), "runtime", "http://proxy.example", "tare.inputs=1"
    )
    assert " ".join(found) == (
        "docker build --network host --build-arg BASE=tare/base:x --build-arg GCC=9 --build-arg http_proxy=http://proxy.example"
        " --target runtime --label tare.inputs=1 --tag tare/x:latest /c"
    )


def test_nodes_that_cannot_take_jobs_are_named_with_their_state() -> None:
    assert services.out_of_service("node01 idle\nnode02 down*\nnode03 mixed\n") == {"node02": "down*"}


def test_docker_lists_a_container_as_one_row() -> None:
    found = containers.parse_row("tare-login\texited\t/checkout\tabc\t2\ttare-fast,tare-ethernet")
    assert found == containers.Found("tare-login", "exited", "/checkout", "abc", 2, frozenset({"tare-ethernet", "tare-fast"}))


def test_job_numbers_grow_from_cluster_to_cluster_and_stay_below_slurms_limit() -> None:
    year_2026, year_2080 = 1_767_225_600, 3_471_292_800
    assert (
        0 < containers.first_job(year_2026) < containers.first_job(year_2026 + 60) < containers.first_job(year_2080) < 67_000_000
    )
