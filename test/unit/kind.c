/* Tests the table of the kinds of locks. */
#include "unit.h"

#include "wire/kind.h"

static void each_kind_has_its_features(void **state) {
    static const unsigned kinds[] = {
        0,
        KIND_FENCED,
        KIND_SEVERAL,
        KIND_SEVERAL | KIND_FENCED,
        KIND_PERMIT,
        KIND_PERMIT | KIND_FENCED,
        KIND_READER,
        KIND_WRITER,
        KIND_WRITER | KIND_FENCED,
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct kind *kind = kind_of(kinds[i]);
        assert_non_null(kind);
        assert_int_equal(kind->features, kinds[i]);
        assert_int_equal(kind_is_fenced(kind), (kinds[i] & KIND_FENCED) != 0);
    }
}

static void features_that_exclude_each_other_are_no_kind(void **state) {
    (void)state;

    assert_null(kind_of(KIND_READER | KIND_FENCED));
    assert_null(kind_of(KIND_READER | KIND_WRITER));
    assert_null(kind_of(KIND_PERMIT | KIND_SEVERAL));
    assert_null(kind_of(KIND_WRITER | KIND_SEVERAL));
}

/* Guards against a row whose columns are shifted. */
static void steps_call_scripts_that_fit(void **state) {
    (void)state;

    for (unsigned features = 0; features < 32; features++) {
        const struct kind *kind = kind_of(features);
        if (kind == NULL) {
            continue;
        }
        assert_true(kind->take == SCRIPT_NONE || script_takes(kind->take));
        assert_true(kind->top_up == SCRIPT_NONE || script_takes(kind->top_up));
        assert_false(script_takes(kind->renew));
        assert_false(script_takes(kind->release));
        assert_false(script_takes(kind->stay));
        if (kind->queue != SCRIPT_NONE) {
            assert_true(script_takes(kind->queue));
            assert_true(script_sources[kind->queue].has_channel);
            assert_true(kind->form != '\0' || kind->features & KIND_PERMIT);
            assert_true(kind->leave != SCRIPT_NONE && !script_takes(kind->leave));
            assert_true(!kind_is_fenced(kind) || script_counts(kind->queue));
        }
        if (kind_is_fenced(kind)) {
            assert_true(script_counts(kind->take));
            assert_true(script_counts(kind->top_up));
            assert_true(script_counts(kind->renew));
        }
    }
}

/* Entries of waiters have a form by which scripts identify the kind. */
static void kinds_in_queue_have_forms_of_their_own(void **state) {
    static const struct {
        unsigned features;
        char form;
        enum script queue, leave;
    } rows[] = {
        {0, '0', SCRIPT_QUEUE, SCRIPT_LEAVE},
        {KIND_FENCED, 'n', SCRIPT_QUEUE, SCRIPT_LEAVE},
        {KIND_SEVERAL, 's', SCRIPT_QUEUE_SET, SCRIPT_LEAVE},
        {KIND_SEVERAL | KIND_FENCED, 'g', SCRIPT_QUEUE_SET, SCRIPT_LEAVE},
        {KIND_PERMIT, 'p', SCRIPT_QUEUE_PERMIT, SCRIPT_PERMIT_RELEASE},
        {KIND_PERMIT | KIND_FENCED, 'p', SCRIPT_QUEUE_PERMIT, SCRIPT_PERMIT_RELEASE},
        {KIND_READER, 'r', SCRIPT_SHARE_QUEUE, SCRIPT_SHARE_LEAVE},
        {KIND_WRITER, 'w', SCRIPT_QUEUE, SCRIPT_LEAVE},
        {KIND_WRITER | KIND_FENCED, 'v', SCRIPT_QUEUE, SCRIPT_LEAVE},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct kind *kind = kind_of(rows[i].features);
        assert_int_equal(kind->form, rows[i].form);
        assert_int_equal(kind->queue, rows[i].queue);
        assert_int_equal(kind->leave, rows[i].leave);
        assert_ptr_equal(kind_at(kind_number(kind)), kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_its_features),
        cmocka_unit_test(features_that_exclude_each_other_are_no_kind),
        cmocka_unit_test(steps_call_scripts_that_fit),
        cmocka_unit_test(kinds_in_queue_have_forms_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
