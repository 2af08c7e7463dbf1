/* A build without c-ares refuses names, and says what to do. Addresses need no names. */
#include "harness.h"

#include <stdio.h>
#include <string.h>

#define KEY "orders:42"

static void names_are_refused(void **state) {
    struct fixture *f = *state;
    char named[64];
    const char *uris[] = {named, masters_uri(f->masters, 1), masters_uri(f->masters, 2)};
    redlock_options options = patient_options(f, uris, 3);

    snprintf(named, sizeof(named), "redis://localhost:%d", masters_port(f->masters, 0));
    redlock_client *client = create_client(f, &options);
    hold(f, client, KEY, LONG_TTL_MS);
    wait_disconnected(f, client, 0, 2);
    assert_non_null(strstr(node_info(client, 0).reason, "localhost cannot be resolved: "));
    assert_non_null(strstr(node_info(client, 0).reason, "install c-ares and build it again"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_are_refused, five_masters, finish),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
