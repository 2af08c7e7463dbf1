/*
 * Tests URIs of nodes: each part of valid ones, and the messages about invalid ones, which must not
 * repeat them.
 */
#include "core/uri.h"
#include "unit.h"

#include <string.h>

#define WHERE "nodes[3]"

struct good {
    const char *text;
    struct uri uri;
    const char *name;
};

static void assert_text(const char *text, const char *expected) {
    if (expected == NULL) {
        assert_null(text);
    } else {
        assert_non_null(text);
        assert_string_equal(text, expected);
    }
}

/*
 * Parses with storage of exactly the promised size, so that a sanitizer detects a single byte too
 * many.
 */
static void check_good(const struct good *good) {
    redlock_error error = {REDLOCK_OK, ""};
    struct uri uri;
    char name[URI_NAME_MAX];
    char *storage = test_malloc(strlen(good->text) + 3);
    redlock_status status = uri_parse(good->text, WHERE, storage, &uri, &error);
    if (status != REDLOCK_OK) {
        print_error("%s: %s\n", good->text, error.message);
    }
    assert_int_equal(status, REDLOCK_OK);
    assert_string_equal(error.message, "");
    assert_text(uri.host, good->uri.host);
    assert_text(uri.path, good->uri.path);
    assert_text(uri.user, good->uri.user);
    assert_text(uri.password, good->uri.password);
    assert_int_equal(uri.port, good->uri.port);
    assert_int_equal(uri.db, good->uri.db);
    assert_int_equal(uri.is_durable, good->uri.is_durable);
    assert_int_equal(uri.is_tls, good->uri.is_tls);
    uri_name(&uri, name);
    assert_string_equal(name, good->name);
    test_free(storage);
}

static void test_hosts(void **state) {
    (void)state;
    static const struct good rows[] = {
        {"redis://localhost", {.host = "localhost", .port = 6379}, "localhost:6379"},
        {"redis://Zeta.Example.ORG",
         {.host = "Zeta.Example.ORG", .port = 6379},
         "Zeta.Example.ORG:6379"},
        {"redis://localhost/", {.host = "localhost", .port = 6379}, "localhost:6379"},
        {"redis://10.0.0.1:7000", {.host = "10.0.0.1", .port = 7000}, "10.0.0.1:7000"},
        {"redis://a-b_c.example.com:1",
         {.host = "a-b_c.example.com", .port = 1},
         "a-b_c.example.com:1"},
        {"redis://h:65535/15", {.host = "h", .port = 65535, .db = 15}, "h:65535/15"},
        {"redis://h:00080", {.host = "h", .port = 80}, "h:80"},
        {"redis://h/2147483647",
         {.host = "h", .port = 6379, .db = 2147483647},
         "h:6379/2147483647"},
        {"rediss://h", {.host = "h", .port = 6379, .is_tls = true}, "h:6379"},
        {"rediss://[::1]:7000/2",
         {.host = "::1", .port = 7000, .db = 2, .is_tls = true},
         "[::1]:7000/2"},
        {"redis://%6Co%63alhost", {.host = "localhost", .port = 6379}, "localhost:6379"},
        {"redis://[::1]", {.host = "::1", .port = 6379}, "[::1]:6379"},
        {"redis://[2001:DB8::7]:7000/2",
         {.host = "2001:DB8::7", .port = 7000, .db = 2},
         "[2001:DB8::7]:7000/2"},
        {"redis://[::ffff:10.0.0.1]/",
         {.host = "::ffff:10.0.0.1", .port = 6379},
         "[::ffff:10.0.0.1]:6379"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_good(&rows[i]);
    }
}

static void test_logins(void **state) {
    (void)state;
    static const struct good rows[] = {
        {"redis://:pw@h", {.host = "h", .port = 6379, .password = "pw"}, "h:6379"},
        {"redis://u:pw@h:1/2",
         {.host = "h", .port = 1, .user = "u", .password = "pw", .db = 2},
         "h:1/2"},
        {"redis://u:pw@[::1]:1",
         {.host = "::1", .port = 1, .user = "u", .password = "pw"},
         "[::1]:1"},
        {"redis://a%3Ab:p%40%2f%3a%25%23%20%FF@h",
         {.host = "h", .port = 6379, .user = "a:b", .password = "p@/:%# \xff"},
         "h:6379"},
        {"redis://:a?b&c=d[e]@h", {.host = "h", .port = 6379, .password = "a?b&c=d[e]"}, "h:6379"},
        {"redis://:%70%77@h", {.host = "h", .port = 6379, .password = "pw"}, "h:6379"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_good(&rows[i]);
    }
}

static void test_sockets(void **state) {
    (void)state;
    static const struct good rows[] = {
        {"unix:///run/redis.sock", {.path = "/run/redis.sock"}, "/run/redis.sock"},
        {"unix:///r?db=0", {.path = "/r"}, "/r"},
        {"unix:///r?durable=yes", {.path = "/r", .is_durable = true}, "/r"},
        {"unix:///r?db=2&durable=yes", {.path = "/r", .db = 2, .is_durable = true}, "/r?db=2"},
        {"unix:///r?durable=no&db=2", {.path = "/r", .db = 2}, "/r?db=2"},
        {"redis://h?durable=yes", {.host = "h", .port = 6379, .is_durable = true}, "h:6379"},
        {"redis://h/3?durable=yes",
         {.host = "h", .port = 6379, .db = 3, .is_durable = true},
         "h:6379/3"},
        {"redis://u:p@h:7/?durable=no",
         {.host = "h", .port = 7, .user = "u", .password = "p"},
         "h:7"},
        {"unix:///run/redis.sock?db=7",
         {.path = "/run/redis.sock", .db = 7},
         "/run/redis.sock?db=7"},
        {"unix:///a%20b%3Fc", {.path = "/a b?c"}, "/a%20b%3Fc"},
        {"unix:///r%3fdb=2", {.path = "/r?db=2"}, "/r%3Fdb=2"},
        {"unix:///%22%5c%25%40%0a%7f%ff", {.path = "/\"\\%@\n\177\377"}, "/%22%5C%25%40%0A%7F%FF"},
        {"unix://:pw@/r", {.path = "/r", .password = "pw"}, "/r"},
        {"unix://u:p%40w@/r?db=3",
         {.path = "/r", .user = "u", .password = "p@w", .db = 3},
         "/r?db=3"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_good(&rows[i]);
    }
}

/* Returns `length` times `c` between two texts. */
static const char *padded(const char *before, char c, size_t length, const char *after) {
    static char text[URI_MAX + 64];
    assert_true(strlen(before) + length + strlen(after) < sizeof(text));
    strcpy(text, before);
    memset(text + strlen(before), c, length);
    strcpy(text + strlen(before) + length, after);
    return text;
}

static redlock_status parse(const char *text, redlock_error *error) {
    struct uri uri;
    char *storage = test_malloc(strlen(text) + 3);
    redlock_status status = uri_parse(text, WHERE, storage, &uri, error);
    test_free(storage);
    return status;
}

static void test_the_longest(void **state) {
    (void)state;
    redlock_error error;
    assert_int_equal(parse(padded("redis://", 'h', 255, ""), &error), REDLOCK_OK);
    assert_int_equal(parse(padded("redis://", 'h', 256, ""), &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, WHERE ": the host is not a name or address");
    assert_int_equal(parse(padded("unix:///", 's', 106, ""), &error), REDLOCK_OK);
    assert_int_equal(parse(padded("unix:///", 's', 107, ""), &error), REDLOCK_EINVAL);
    assert_non_null(strstr(error.message, "longer than 107 bytes"));
    assert_int_equal(parse(padded("redis://:", 'p', URI_MAX - 11, "@h"), &error), REDLOCK_OK);
    assert_int_equal(parse(padded("redis://:", 'p', URI_MAX - 10, "@h"), &error), REDLOCK_EINVAL);
    assert_string_equal(error.message, WHERE ": longer than 4096 bytes");
}

static void test_the_longest_name_fits(void **state) {
    (void)state;
    static char storage[URI_MAX], name[URI_NAME_MAX];
    struct uri uri;
    redlock_error error;
    const char *text = padded("redis://[", ':', 255, "]:65535");
    assert_int_equal(uri_parse(text, WHERE, storage, &uri, &error), REDLOCK_OK);
    uri_name(&uri, name);
    assert_int_equal(strlen(name), 255 + 2 + 6);
    assert_string_equal(name + 255, ":]:65535");
    static char path[8 + 3 * 106 + 32] = "unix:///";
    for (int i = 0; i < 106; i++) {
        strcat(path, "%FF");
    }
    strcat(path, "?db=2147483647");
    assert_int_equal(uri_parse(path, WHERE, storage, &uri, &error), REDLOCK_OK);
    uri_name(&uri, name);
    assert_string_equal(name, path + strlen("unix://"));
}

/* Invalid URIs, and a part of the message. */
static const struct {
    const char *text, *message;
} bad[] = {
    {"", "does not begin with redis://, rediss:// or unix://"},
    {"localhost:6379", "does not begin with redis://, rediss:// or unix://"},
    {"redis:/h", "does not begin with"},
    {"Redis://h", "does not begin with"},
    {"http://h", "does not begin with"},
    {"redis://", "the host is missing"},
    {"redis:///0", "the host is missing"},
    {"redis://:6379", "the host is missing"},
    {"redis://[]:6379", "the host is missing"},
    {"redis://:pw@", "the host is missing"},
    {"redis://h h", "a space"},
    {"redis://h\n", "a space"},
    {"redis://h\x7f", "not printable"},
    {"redis://h\xc3\xa9", "not printable"},
    {"redis://h#0", "'#'"},
    {"redis://h:", "the port is not a number"},
    {"redis://h:0", "the port is not a number from 1 to 65535"},
    {"redis://h:65536", "the port is not a number from 1 to 65535"},
    {"redis://h:99999999999999999999999", "the port is not a number"},
    {"redis://h:6379x", "the port is not a number"},
    {"redis://h:-1", "the port is not a number"},
    {"redis://h:+1", "the port is not a number"},
    {"redis://::1", "the host is missing"},
    {"redis://2001:db8::1", "an IPv6 address belongs in brackets"},
    {"redis://[::1", "not closed by ']'"},
    {"redis://[::1/0", "not closed by ']'"},
    {"redis://[::1]6379", "not closed by ']'"},
    {"redis://[::1]:", "the port is not a number"},
    {"redis://[10.0.0.1]", "the host is not a name or address"},
    {"redis://[localhost]", "the host is not a name or address"},
    {"redis://[fe80::1%25eth0]", "the host is not a name or address"},
    {"redis://h%", "the host is not a name or address"},
    {"redis://h%4", "the host is not a name or address"},
    {"redis://h%4g", "the host is not a name or address"},
    {"redis://h%00", "the host is not a name or address"},
    {"redis://h%20h", "the host is not a name or address"},
    {"redis://h=h", "the host is not a name or address"},
    {"redis://h^h", "the host is not a name or address"},
    {"redis://h~h", "the host is not a name or address"},
    {"redis://h,h2", "the host is not a name or address"},
    {"redis://h?db=1", "the only option after '?' is durable=yes"},
    {"redis://h/?db=1", "the only option after '?' is durable=yes"},
    {"redis://h/1?x=y", "the only option after '?' is durable=yes"},
    {"redis://h/1?", "the only option after '?' is durable=yes"},
    {"redis://h?durable=yes&", "the only option after '?' is durable=yes"},
    {"redis://h?durable", "durable is neither yes nor no"},
    {"redis://h?durable=maybe", "durable is neither yes nor no"},
    {"redis://h?durable=yet", "durable is neither yes nor no"},
    {"unix:///a?durable=", "durable is neither yes nor no"},
    {"redis://h/x", "the database is not a number"},
    {"redis://h/1/", "the database is not a number"},
    {"redis://h//", "the database is not a number"},
    {"redis://h/-1", "the database is not a number"},
    {"redis://h/2147483648", "the database is not a number"},
    {"redis://h/18446744073709551617", "the database is not a number"},
    {"unix://", "a socket is written unix:///path"},
    {"unix://run/redis.sock", "a socket is written unix:///path"},
    {"unix://:pw@", "a socket is written unix:///path"},
    {"unix:///", "the path of the socket is empty"},
    {"unix:///?db=1", "the path of the socket is empty"},
    {"unix:///a%", "a '%' in the path"},
    {"unix:///a%00b", "a '%' in the path"},
    {"unix:///a%zz", "a '%' in the path"},
    {"unix:///a?", "the options after '?' are db=NUMBER and durable=yes"},
    {"unix:///a?db", "the database is not a number"},
    {"unix:///a?database=1", "the options after '?' are db=NUMBER and durable=yes"},
    {"unix:///a?db=", "the database is not a number"},
    {"unix:///a?db=1&x=2", "the options after '?' are db=NUMBER and durable=yes"},
};

static void test_bad_uris(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        redlock_error error = {REDLOCK_OK, ""};
        if (parse(bad[i].text, &error) != REDLOCK_EINVAL ||
            strstr(error.message, bad[i].message) == NULL) {
            print_error("%s: %s\n", bad[i].text, error.message);
            fail();
        }
        assert_int_equal(error.status, REDLOCK_EINVAL);
        assert_memory_equal(error.message, WHERE ": ", sizeof(WHERE ": ") - 1);
        assert_int_equal(parse(bad[i].text, NULL), REDLOCK_EINVAL);
    }
}

/* Mistakes around the login. No part of S3cr3t may occur in the message. */
static const struct {
    const char *text, *message;
} bad_logins[] = {
    {"redis://S3cr3t@h", "a user needs a password"},
    {"redis://@h", "the password before '@' is empty"},
    {"redis://:@h", "the password before '@' is empty"},
    {"redis://S3cr3t:@h", "the password before '@' is empty"},
    {"redis://u:S3:cr3t@h", "a ':' in a user or password must be written %3A"},
    {"redis://u:S3@cr3t@h", "must be written %40, %2F"},
    {"redis://u:S3/cr3t@h", "must be written %40, %2F"},
    {"redis://u:S3/cr3@t@h/0", "must be written %40, %2F"},
    {"redis://u:S3 cr3t@h", "write it as %XX"},
    {"redis://u:S3#cr3t@h", "write it as %XX"},
    {"redis://u:S3cr3t%@h", "a '%' in the user or password"},
    {"redis://u:S3cr3t%4@h", "a '%' in the user or password"},
    {"redis://u:S3%00cr3t@h", "a '%' in the user or password"},
    {"redis://u:S3%g0cr3t@h", "a '%' in the user or password"},
    {"redis://S3%0gcr3t:pw@h", "a '%' in the user or password"},
    {"redis://u:S3cr3t@h:port", "the port is not a number"},
    {"redis://u:S3cr3t@h/db", "the database is not a number"},
    {"redis://u:S3cr3t@h h", "write it as %XX"},
    {"redis://u:S3cr3t", "the port is not a number"},
    {"redis://u:S3cr3t@", "the host is missing"},
    {"rediss://u:S3cr3t@h/x", "the database is not"},
    {"rediss://u:S3cr3t", "the port is not a number"},
    {"redis:u:S3cr3t@h", "does not begin with"},
    {"u:S3cr3t@h", "does not begin with"},
    {"unix://u:S3cr3t@h/path", "a socket is written"},
    {"unix:///path@S3cr3t", "must be written %40, %2F"},
    {"unix://u:S3cr3t@/path?db=x", "the database is not a number"},
};

static void test_no_message_repeats_a_password(void **state) {
    (void)state;
    static const char *const pieces[] = {"S3", "cr3", "3t"};
    for (size_t i = 0; i < COUNT_OF(bad_logins); i++) {
        redlock_error error = {REDLOCK_OK, ""};
        if (parse(bad_logins[i].text, &error) != REDLOCK_EINVAL ||
            strstr(error.message, bad_logins[i].message) == NULL) {
            print_error("%s: %s\n", bad_logins[i].text, error.message);
            fail();
        }
        for (size_t piece = 0; piece < COUNT_OF(pieces); piece++) {
            assert_null(strstr(error.message, pieces[piece]));
        }
    }
}

static void test_no_name_holds_a_login(void **state) {
    (void)state;
    static const char *const texts[] = {"redis://S3cr3t:S3cr3t@h:1/2", "redis://:S3cr3t@[::1]",
                                        "unix://S3cr3t:S3cr3t@/path?db=1"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char storage[64], name[URI_NAME_MAX];
        struct uri uri;
        assert_int_equal(uri_parse(texts[i], WHERE, storage, &uri, NULL), REDLOCK_OK);
        assert_string_equal(uri.password, "S3cr3t");
        uri_name(&uri, name);
        assert_null(strstr(name, "S3"));
    }
}

/* Compares servers, and logins at one server. */
static void test_which_are_the_same(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool server, login;
    } rows[] = {
        {"redis://h", "redis://h:6379/0", true, true},
        {"redis://h", "redis://H", true, true},
        {"redis://h", "redis://i", false, true},
        {"redis://h", "redis://h:7", false, true},
        {"redis://h", "redis://h/1", false, true},
        {"redis://h", "unix:///h", false, true},
        {"unix:///h", "redis://h", false, true},
        {"unix:///h", "unix:///h?db=0", true, true},
        {"unix:///h", "unix:///H", false, true},
        {"redis://h", "rediss://h", true, false},
        {"redis://h", "redis://h?durable=yes", true, false},
        {"redis://u:p@h", "redis://u:p@h", true, true},
        {"redis://u:p@h", "redis://u:q@h", true, false},
        {"redis://u:p@h", "redis://v:p@h", true, false},
        {"redis://:p@h", "redis://h", true, false},
        {"redis://h", "redis://:p@h", true, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char storage[2][64];
        struct uri a, b;
        assert_int_equal(uri_parse(rows[i].a, WHERE, storage[0], &a, NULL), REDLOCK_OK);
        assert_int_equal(uri_parse(rows[i].b, WHERE, storage[1], &b, NULL), REDLOCK_OK);
        assert_int_equal(uri_is_same_server(&a, &b), rows[i].server);
        assert_int_equal(uri_is_same_login(&a, &b), rows[i].login);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_logins),
        cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_the_longest),
        cmocka_unit_test(test_the_longest_name_fits),
        cmocka_unit_test(test_bad_uris),
        cmocka_unit_test(test_no_message_repeats_a_password),
        cmocka_unit_test(test_no_name_holds_a_login),
        cmocka_unit_test(test_which_are_the_same),
    };
    return cmocka_run_group_tests_name("uri", tests, NULL, NULL);
}
