"""`dtdebug doctor` on four hosts: namespaces with their own names, addresses and filters."""

import doctor_faults
import doctor_lab
import hosts_lab
import pytest

pytestmark = [
    pytest.mark.skipif(bool(hosts_lab.can_be_made()), reason=hosts_lab.can_be_made()),
    pytest.mark.skipif(bool(doctor_lab.can_filter()), reason=doctor_lab.can_filter()),
]
CHOSEN = [
    "loopback_of_one_that_is_called",
    "card_down",
    "one_way",
    "way_back_by_another_card",
    "large_lost",
    "number_twice",
    "code_differs",
]


@pytest.mark.parametrize("name", ["healthy_plain", "healthy_docker", "healthy_strict_in_one_network"])
def test_healthy_hosts_get_no_fault(name, tmp_path):
    """Docker's bridges with one address on all hosts, a VPN, two cards in one network: all say that all is well."""
    with doctor_lab.Lab(tmp_path) as lab:
        found = lab.doctors(**(doctor_faults.HEALTHY[name](lab) or {}))
    assert [(report["findings"], status) for report, status in found.values()] == [([], 0)] * 4
    assert found[2][0]["forecast"]["gloo"] == "connects"


@pytest.mark.parametrize("name", CHOSEN)
def test_a_fault_is_named_with_its_host_and_cause(name, tmp_path):
    """The id of the cause, the host or pair, and the exit status 1 on each host."""
    fault = doctor_faults.FAULTS[name]
    with doctor_lab.Lab(tmp_path, net=fault.net) as lab:
        found = lab.doctors("--wait", "4", **(fault.put(lab) or {}))
    every = [f for report, _ in found.values() for f in report["findings"]]
    mine = [f for f in every if f["id"] in fault.ids]
    assert {f["severity"] for f in mine} == {"fault"}
    assert fault.hosts <= {h for f in mine for h in f["hosts"]}
    assert {status for _, status in found.values()} == {1}


def test_a_card_that_only_receives_is_named(tmp_path):
    """Of two cards in one network the kernel sends by the first, whichever the variable names; the job connects."""
    with doctor_lab.Lab(tmp_path, count=3) as lab:
        doctor_faults.in_one_network(lab, "eth1")
        report, status = lab.doctors()[1]
    (found,) = report["findings"]
    assert (found["id"], found["severity"], sorted(found["hosts"]), status) == (
        "DR118",
        "warning",
        ["h0", "h1", "h2"],
        0,
    )
    assert "an address of eth0" in found["text"]
    assert report["forecast"]["gloo"] == "connects"


def test_the_forecast_is_what_real_gloo_does(tmp_path):
    """127.0.1.1 as the own name of one host: doctor says that gloo fails, and with its setting gloo connects."""
    with doctor_lab.Lab(tmp_path, count=2, net="192.168.77") as lab:
        lab.names(1, own="127.0.1.1")
        report, _ = lab.doctors()[0]
        assert report["forecast"]["gloo"] == "fails"
        assert report["export"] == {"GLOO_SOCKET_IFNAME": "eth0"}
        assert lab.gloo(seconds=40) is False
        for variables in lab.variables:
            variables.update(report["export"])
        assert lab.gloo(seconds=60) is True
