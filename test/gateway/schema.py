"""Checks values against the schemas of an OpenAPI file, and records which parts were seen."""

import json
import re

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
KNOWN = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum",
    "maximum", "maxLength", "maxItems", "description", "default", "$ref",
}  # fmt: skip


class Description:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.document = json.load(file)
        self.schemas = self.document["components"]["schemas"]
        self.fields = set()  # (schema, field) that were seen
        self.answers = set()  # (path, method, status) that were seen

    def operations(self):
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                if method != "parameters":
                    yield path, method, operation

    def all_answers(self):
        return {
            (path, method, status)
            for path, method, operation in self.operations()
            for status in operation["responses"]
        }

    def all_fields(self):
        return {
            (name, field)
            for name, schema in self.schemas.items()
            for field in schema.get("properties", {})
        }

    def find(self, path):
        """Returns the path in the file that matches a request's path, or None."""
        for template in self.document["paths"]:
            pattern = re.sub(r"\\\{[a-z]+\\\}", "[^/]+", re.escape(template))
            if re.fullmatch(pattern, path):
                return template
        return None

    def check_answer(self, method, path, answer):
        """Checks an answer, and notes it."""
        template = self.find(path)
        is_head = method == "HEAD"  # as GET, without the body
        method = "GET" if is_head else method
        operation = self.document["paths"].get(template, {}).get(method.lower())
        if operation is None:  # 404 and 405, which the file describes in its text
            assert answer.status in (404, 405), answer
            if is_head:
                return
            self.check(answer.json, {"$ref": "#/components/schemas/Problem"}, path)
            return
        described = operation["responses"].get(str(answer.status))
        assert described is not None, f"{method} {template}: no answer {answer.status}: {answer}"
        self.answers.add((template, method.lower(), str(answer.status)))
        for name in described.get("headers", {}):
            assert name in answer.headers, f"{method} {template}: no header {name}"
        content = described.get("content")
        if content is None:
            assert answer.text == "", answer
            return
        assert answer.type in content, f"{method} {template}: {answer.type}"
        if is_head:
            assert answer.text == "", answer
            return
        if answer.type.endswith("json"):
            self.check(answer.json, content[answer.type]["schema"], f"{method} {template}")
        if answer.type == "application/problem+json":
            assert answer.json["status"] == answer.status, answer

    def check_request(self, method, path, body):
        """Checks a body that is meant to be good, and notes its fields."""
        operation = self.document["paths"][self.find(path)][method.lower()]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        self.check(body, schema, f"{method} {path}")

    def check(self, value, schema, where, name=None):
        while "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            schema = self.schemas[name]
        assert set(schema) <= KNOWN, f"{where}: the test does not know all of {set(schema)}"
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        is_flag = isinstance(value, bool)
        assert any(
            (isinstance(value, TYPES[kind]) and (not is_flag or kind == "boolean"))
            or (kind == "integer" and isinstance(value, float) and value.is_integer())
            for kind in types
        ), f"{where}: {value!r} is no {schema['type']}"
        if "enum" in schema:
            assert value in schema["enum"], f"{where}: {value!r}"
        if isinstance(value, str):
            assert re.search(schema.get("pattern", ""), value), f"{where}: {value!r}"
            assert len(value) <= schema.get("maxLength", len(value)), f"{where}: {value!r}"
        elif isinstance(value, (int, float)) and not is_flag:
            assert value >= schema.get("minimum", value), f"{where}: {value}"
            assert value <= schema.get("maximum", value), f"{where}: {value}"
        elif isinstance(value, list):
            assert len(value) <= schema.get("maxItems", len(value)), f"{where}: {len(value)}"
            for item in value:
                self.check(item, schema["items"], where)
        elif isinstance(value, dict):
            self.check_object(value, schema, where, name)

    def check_object(self, value, schema, where, name):
        properties = schema.get("properties", {})
        for field in schema.get("required", []):
            assert field in value, f"{where}: no {field}"
        for field, item in value.items():
            if field not in properties:
                assert schema.get("additionalProperties", True), f"{where}: {field}"
                continue
            self.fields.add((name, field))
            self.check(item, properties[field], f"{where}/{field}")
