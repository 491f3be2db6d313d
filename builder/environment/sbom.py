"""Format a stack's software bill of materials as CycloneDX JSON."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import (
    Component,
    ComponentScope,
    ComponentType,
    Diff,
    Patch,
    PatchClassification,
    Pedigree,
)
from cyclonedx.model.issue import IssueClassification, IssueType, IssueTypeSource
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from builder.environment.envs import Lock
from builder.package.channel import Package
from builder.package.engine import SOURCE_DATE_EPOCH
from builder.package.package_cache import Plan
from builder.source.sources import hash_file
from builder.stack.recipes import Fix, Recipe

# The directory into which recipes unpack the wheels of their build tools.
TOOLS_DIRECTORY = "wheels"
# The suffix of the archive of Debian's patches. recipes/<name>/fixes names patches in this archive.
SERIES_SUFFIX = ".debian.tar.xz"


def format_bill(plan: Plan, lock: Lock) -> str:
    """Format the bill of the packages in ``lock``. The same packages give the same text.

    The component of a package has its SHA-256, its licence and a pedigree: its sources and patches.
    A patch of Debian names the CVEs that it resolves. Build tools have the scope ``excluded``.
    """
    recipes_and_outputs = {
        output["package"]["name"]: (recipe, output)
        for recipe in plan.recipes
        for output in recipe.rendered
    }
    components = [
        _describe_package(package, *recipes_and_outputs[package.name]) for package in lock.packages
    ]
    stack = Component(
        name=f"theano-fast:{lock.stack}",
        type=ComponentType.APPLICATION,
        version=lock.digest,
        bom_ref=f"stack:{lock.stack}",
    )
    time = datetime.fromtimestamp(SOURCE_DATE_EPOCH, timezone.utc)
    bom = Bom(
        components=components,
        metadata=BomMetaData(component=stack, timestamp=time),
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{lock.digest}"),
    )
    bom.register_dependency(stack, components)
    outputter = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6)
    return outputter.output_as_string(indent=1) + "\n"


def _describe_package(package: Package, recipe: Recipe, output: Mapping[str, Any]) -> Component:
    about, version = output["about"], output["package"]["version"]
    inputs = output.get("source", [])
    patches = [recipe.path / patch for entry in inputs for patch in entry.get("patches", [])]
    return Component(
        name=package.name,
        version=version,
        description=about["summary"],
        bom_ref=package.path,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=package.sha256)],
        licenses=[LicenseExpression(about["license"])],
        purl=PackageURL(
            "conda",
            name=package.name,
            version=version,
            qualifiers={"build": output["build"]["string"], "subdir": package.subdir},
        ),
        pedigree=Pedigree(
            # Omit sources without a hash: they are files of this project.
            ancestors=[_describe_source(package, recipe, row) for row in inputs if "sha256" in row],
            patches=[
                *(_describe_patch(recipe, file) for file in patches),
                *(_describe_fix(fix, recipe) for fix in recipe.fixes),
            ],
        ),
    )


def _describe_source(package: Package, recipe: Recipe, entry: Mapping[str, Any]) -> Component:
    name = Path(entry["path"]).name
    upstream = next(source.upstream for source in recipe.sources if source.file == name)
    addresses = [XsUri(address) for address in upstream]
    return Component(
        name=name,
        type=ComponentType.FILE,
        bom_ref=f"{package.path}#{name}",
        scope=ComponentScope.EXCLUDED if entry.get("target_directory") == TOOLS_DIRECTORY else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry["sha256"])],
        external_references=[
            ExternalReference(type=ExternalReferenceType.SOURCE_DISTRIBUTION, url=address)
            for address in addresses
        ],
    )


def _describe_patch(recipe: Recipe, file: Path) -> Patch:
    url = f"recipes/{recipe.name}/{file.relative_to(recipe.path)}#sha256={hash_file(file)}"
    return Patch(type=PatchClassification.UNOFFICIAL, diff=Diff(url=XsUri(url)))


def _describe_fix(fix: Fix, recipe: Recipe) -> Patch:
    [series] = [source.file for source in recipe.sources if source.file.endswith(SERIES_SUFFIX)]
    issues = [
        IssueType(
            type=IssueClassification.SECURITY,
            id=cve,
            source=IssueTypeSource(
                name="NVD", url=XsUri(f"https://nvd.nist.gov/vuln/detail/{cve}")
            ),
            references=[XsUri(f"https://security-tracker.debian.org/tracker/{cve}")],
        )
        for cve in fix.cves
    ]
    return Patch(
        type=PatchClassification.BACKPORT,
        diff=Diff(url=XsUri(f"{series}#debian/patches/{fix.patch}")),
        resolves=issues,
    )
