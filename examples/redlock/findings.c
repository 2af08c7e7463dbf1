#include "findings.h"

#include "json.h"
#include "paint.h"
#include "plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the node already has a finding with this name and text. */
static bool is_known(const struct findings *findings, const struct finding *finding) {
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *known = &findings->list[i];

        if (known->node == finding->node && strcmp(known->name, finding->name) == 0 &&
            strcmp(known->text, finding->text) == 0) {
            return true;
        }
    }
    return false;
}

void findings_add(struct findings *findings, enum finding_grade grade, const char *name,
                  const char *format, ...) {
    struct finding *finding = &findings->list[findings->count];
    va_list values;

    if (findings->count == FINDINGS_MOST) {
        return;
    }
    finding->node = findings->node;
    finding->grade = grade;
    finding->name = name;
    va_start(values, format);
    vsnprintf(finding->text, sizeof(finding->text), format, values);
    va_end(values);
    findings->count += !is_known(findings, finding);
}

enum finding_grade findings_worst(const struct findings *findings, size_t node) {
    enum finding_grade worst = FINDING_GOOD;

    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];

        if (finding->node == node && finding->grade > worst) {
            worst = finding->grade;
        }
    }
    return worst;
}

void findings_print(const struct findings *findings, size_t node, const char *title) {
    static const char *const marks[] = {"ok", "warning", "FAULT"};
    static const enum paint colours[] = {PAINT_GOOD, PAINT_WARN, PAINT_BAD};

    printf("%s%s%s\n", paint(PAINT_STRONG), title, paint(PAINT_END));
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];

        if (finding->node == node) {
            printf("  %s%-7s%s  ", paint(colours[finding->grade]), marks[finding->grade],
                   paint(PAINT_END));
            plain_print(stdout, finding->text, strlen(finding->text));
            putchar('\n');
        }
    }
}

void findings_json(const struct findings *findings, size_t node, struct json *json) {
    static const char *const grades[] = {"good", "warning", "fault"};

    json_begin(json, "findings", '[');
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];

        if (finding->node == node) {
            json_begin(json, NULL, '{');
            json_text(json, "grade", grades[finding->grade]);
            json_text(json, "name", finding->name);
            json_text(json, "text", finding->text);
            json_end(json, '}');
        }
    }
    json_end(json, ']');
}
