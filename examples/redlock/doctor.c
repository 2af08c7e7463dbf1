/* `redlock doctor`: checks whether the nodes can do what locks need, and says what to fix. */
#include "asker.h"
#include "checkup.h"
#include "duration.h"
#include "findings.h"
#include "json.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "redlock:"

struct doctor {
    struct asker asker;
    struct findings findings;
    struct checkup checkups[REDLOCK_MAX_NODES];
    redlock_node_info infos[REDLOCK_MAX_NODES];
    size_t fit; /* number of nodes without a fault */
};

/* Adds the library's own view of a node. */
static void add_trust(struct findings *findings, const redlock_node_info *info) {
    char left[DURATION_TEXT];

    if (!info->connected) {
        findings_add(findings, FINDING_FAULT, "not connected", "the library is not connected: %s",
                     info->reason);
    } else if (!info->trusted && info->distrust_ms > 0) {
        findings_add(findings, FINDING_FAULT, "not trusted",
                     "its votes do not count for %s more: %s",
                     duration_write(left, info->distrust_ms), info->distrust);
    } else if (!info->trusted) {
        findings_add(findings, FINDING_FAULT, "not trusted", "its votes do not count: %s",
                     info->distrust);
    } else {
        findings_add(findings, FINDING_GOOD, "trusted", "its votes count");
    }
}

static bool is_local(const struct direct_uri *uri) {
    return uri->port == 0 || strncmp(uri->host, "127.", 4) == 0 ||
           strcasecmp(uri->host, "localhost") == 0 || strcmp(uri->host, "::1") == 0;
}

/* Reports logins that are sent in the clear over a network. */
static void check_secrecy(struct findings *findings, const struct direct_uri *uri) {
    if (uri->has_tls) {
        findings_add(findings, FINDING_GOOD, "TLS", "over TLS; its server is not asked questions");
    } else if (uri->has_password && !is_local(uri)) {
        findings_add(findings, FINDING_WARNING, "no TLS",
                     "its password travels in clear text: use rediss://");
    }
}

static void begin_with_node(struct doctor *doctor, size_t index) {
    struct checkup *checkup = &doctor->checkups[index];

    *checkup = (struct checkup){
        .prefix = doctor->asker.prefix != NULL ? doctor->asker.prefix : PREFIX,
        .max_ttl_ms = doctor->asker.nodes.max_ttl_ms,
        .timeout_ms = doctor->asker.nodes.direct_timeout_ms,
    };
    direct_read_uri(&checkup->uri, doctor->asker.nodes.uris[index]);
    checkup_begin(checkup);
}

static void look_at_node(struct doctor *doctor, size_t index) {
    struct checkup *checkup = &doctor->checkups[index];
    struct findings *findings = &doctor->findings;

    findings->node = index;
    checkup_node(checkup, findings);
    check_secrecy(findings, &checkup->uri);
    for (size_t i = 0; i < index; i++) {
        if (checkup->run_id[0] != '\0' &&
            strcmp(checkup->run_id, doctor->checkups[i].run_id) == 0) {
            /* Only one of the two counts: the one that answered the library first. */
            bool counts = doctor->infos[index].trusted && !doctor->infos[i].trusted;

            findings_add(findings, counts ? FINDING_WARNING : FINDING_FAULT, "duplicate",
                         "it is the same server as %s, and counts once: name each server once",
                         doctor->infos[i].node);
        }
    }
    add_trust(findings, &doctor->infos[index]);
    doctor->fit += findings_worst(findings, index) != FINDING_FAULT;
}

/* ------------------------------------------------------------------------------------ all of them
 */

static bool is_same_host(const struct direct_uri *one, const struct direct_uri *other) {
    return (is_local(one) && is_local(other)) || strcasecmp(one->host, other->host) == 0;
}

/* Lists the nodes from `first` on that share its host. Returns their number; 0: listed before. */
static size_t list_host(const struct doctor *doctor, size_t first, char *list, size_t size) {
    const struct direct_uri *uri = &doctor->checkups[first].uri;
    size_t count = 0;
    size_t length = 0;

    for (size_t i = 0; i < doctor->asker.nodes.count; i++) {
        if (is_same_host(uri, &doctor->checkups[i].uri)) {
            if (i < first) {
                return 0;
            }
            if (length < size) {
                length += (size_t)snprintf(list + length, size - length, "%s%s",
                                           count == 0 ? "" : ", ", doctor->infos[i].node);
            }
            count++;
        }
    }
    return count;
}

static void check_hosts(struct doctor *doctor) {
    char list[FINDING_TEXT - 128];

    for (size_t i = 0; i < doctor->asker.nodes.count; i++) {
        if (list_host(doctor, i, list, sizeof(list)) > 1) {
            findings_add(&doctor->findings, FINDING_WARNING, "shared host",
                         "%s are on one host, and fail together: use a host for each", list);
        }
    }
}

static void look_at_all(struct doctor *doctor) {
    struct findings *findings = &doctor->findings;
    size_t count = doctor->asker.nodes.count;
    size_t quorum = nodes_quorum(&doctor->asker.nodes);

    findings->node = FINDING_SET;
    if (count < 3) {
        findings_add(findings, FINDING_WARNING, "few", "no node may fail: use 3 or 5");
    } else if (count % 2 == 0) {
        findings_add(findings, FINDING_WARNING, "even",
                     "%zu nodes need %zu: with one less as many may fail", count, quorum);
    }
    check_hosts(doctor);
    if (doctor->fit < quorum) {
        findings_add(findings, FINDING_FAULT, "no quorum",
                     "%zu of %zu nodes are fit, %zu are needed: no lock can be acquired",
                     doctor->fit, count, quorum);
    } else {
        findings_add(findings, doctor->fit < count ? FINDING_WARNING : FINDING_GOOD, "quorum",
                     "%zu of %zu nodes are fit, %zu are needed: %zu more may fail", doctor->fit,
                     count, quorum, doctor->fit - quorum);
    }
}

/* ------------------------------------------------------------------------------------- the report
 */

static void print(const struct doctor *doctor) {
    for (size_t i = 0; i < doctor->asker.nodes.count; i++) {
        findings_print(&doctor->findings, i, doctor->infos[i].node);
    }
    findings_print(&doctor->findings, FINDING_SET, "all nodes");
}

static void write_json(const struct doctor *doctor) {
    struct json json = {.stream = stdout};

    json_begin(&json, NULL, '{');
    json_number(&json, "fit", (int64_t)doctor->fit);
    json_number(&json, "quorum", (int64_t)nodes_quorum(&doctor->asker.nodes));
    findings_json(&doctor->findings, FINDING_SET, &json);
    json_begin(&json, "nodes", '[');
    for (size_t i = 0; i < doctor->asker.nodes.count; i++) {
        const struct checkup *checkup = &doctor->checkups[i];

        json_begin(&json, NULL, '{');
        json_text(&json, "node", doctor->infos[i].node);
        json_bool(&json, "fit", findings_worst(&doctor->findings, i) != FINDING_FAULT);
        json_text(&json, "version", checkup->version);
        json_number(&json, "round_trip_us", (int64_t)checkup->round_trip_us);
        json_number(&json, "clock_offset_us", checkup->clock_offset_us);
        findings_json(&doctor->findings, i, &json);
        json_end(&json, '}');
    }
    json_end(&json, ']');
    json_end(&json, '}');
    json_line(&json);
}

int doctor_main(int argc, char **argv) {
    static struct doctor doctor;

    if (asker_read(&doctor.asker, argc, argv, ASKER_PREFIX) != argc) {
        tool_usage("doctor: there are no arguments but options");
    }
    nodes_check(&doctor.asker.nodes);
    for (size_t i = 0; i < doctor.asker.nodes.count; i++) {
        begin_with_node(&doctor, i);
    }
    asker_connect(&doctor.asker);
    redlock_client_nodes(doctor.asker.client, doctor.infos, REDLOCK_MAX_NODES);
    for (size_t i = 0; i < doctor.asker.nodes.count; i++) {
        look_at_node(&doctor, i);
    }
    look_at_all(&doctor);
    if (doctor.asker.is_json) {
        write_json(&doctor);
    } else {
        print(&doctor);
    }
    asker_finish(&doctor.asker);
    return doctor.fit >= nodes_quorum(&doctor.asker.nodes) ? TOOL_OK : TOOL_NO_QUORUM;
}
