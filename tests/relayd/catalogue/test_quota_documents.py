"""Quotas as the providers' command lines print them: imported, planned with, and undone."""

from __future__ import annotations

import json
from pathlib import Path

from planner.model.quotas.vcpus import VcpuQuota
from relayd.catalogue.loading import load_catalogue
from tests.relayd.catalogue.conftest import Commands
from tests.relayd.catalogue.documents import STANDARD, aws_quotas, azure_usages, gcp_quotas, written
from tests.relayd.conftest import Relayd


def test_quotas_are_imported_planned_with_and_undone(
    tmp_path: Path, relayd: Relayd, catalogue: Commands
) -> None:
    documents = {
        "ec2.json": aws_quotas(
            ("L-1216C47A", STANDARD, 96.0),
            ("L-417A185B", "Running On-Demand P instances", 8.0),
            ("L-0263D0A3", "EC2-VPC Elastic IPs", 5.0),
            ("L-34B43A08", "All Standard (A, C, D, ...) Spot Instance Requests", 640.0),
        ),
        "westeurope.json": azure_usages(
            ("availabilitySets", 0, 2500),
            ("cores", "12", "100"),
            ("standardDv5Family", 12, 80),
            ("standardNCFamily", 0, 0),
        ),
        "gcp.json": [
            gcp_quotas("us-east4", ("CPUS", 72.0, 0.25), ("N2_CPUS", 9.22e18, 0.0)),
            gcp_quotas("us-west1", ("N2_CPUS", 64.0, 40.0), ("SSD_TOTAL_GB", 500.0, 10.0)),
        ],
    }
    files = [written(tmp_path / name, document) for name, document in documents.items()]
    words = ("import", *files, "--as-of", "2026-11-22")
    said = json.loads(catalogue(*words, "--json").out)
    assert said["changes"]
    assert {name: count for name, count in said["left_out"].items() if "quotas" in name} == {
        "quotas on other things": 4,
        "quotas without a limit": 1,
        "quotas that no known VM type counts against": 2,
    }
    as_of = "2026-11-22"
    source = "AWS Service Quotas and Azure's VM usage and Google Cloud's regions, as of 2026-11-22"
    assert load_catalogue().vcpu_quotas == (
        VcpuQuota("aws:us-east-1", "L-1216C47A", 96, 0, (), source, as_of),
        VcpuQuota("azure:westeurope", "cores", 100, 12, (), source, as_of),
        VcpuQuota("azure:westeurope", "standardDv5Family", 80, 12, (), source, as_of),
        VcpuQuota("gcp:us-east4", "CPUS", 72, 1, (), source, as_of),
        VcpuQuota("gcp:us-west1", "N2_CPUS", 64, 40, (), source, as_of),
    )
    asked = ["plan", "aws:us-east-1", "aws:eu-west-1", "--volume", "5TB", "--objective", "time"]
    asked += ["--vm-type", "aws=m5.8xlarge"]
    plan = json.loads(relayd(*asked, "--json").out)
    assert plan["vms"]["aws:us-east-1"] == 3
    assert any(f"quota {STANDARD} (L-1216C47A) is 96 vCPUs" in w for w in plan["warnings"])
    refused = relayd("plan", "gcp:us-west1", "gcp:us-east4", "--vm-type", "gcp=n2-standard-32")
    assert refused.code == 3
    assert "Ask Google Cloud to raise it to 72 for 1 VM" in refused.err
    # What is in use, which AWS does not say, is a line of one's own; again, nothing changes.
    own = tmp_path / "own.toml"
    key = '[[vcpu_quota]]\nregion = "aws:us-east-1"\nfamily = "L-1216C47A"\n'
    own.write_text(f"{key}used_vcpus = 40")
    first = load_catalogue([own]).vcpu_quotas[0]
    assert (first.vcpus, first.used_vcpus) == (96, 40)
    assert "Nothing changes" in catalogue(*words).out
    assert "L-1216C47A" in catalogue("show", "aws:us-east-1").out
    catalogue("undo")
    assert load_catalogue().vcpu_quotas == ()
