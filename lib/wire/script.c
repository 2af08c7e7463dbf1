#include "wire/script.h"

/* Keys and arguments follow the contracts in scripts/. */
const struct script_info script_infos[SCRIPT_COUNT] = {
    [SCRIPT_RELEASE] = {.keys = "", .arguments = "v", .is_loaded = true},
    [SCRIPT_RENEW] = {.keys = "", .arguments = "vt", .is_loaded = true},
    [SCRIPT_BEAT] = {.keys = "", .arguments = ""},
    [SCRIPT_PROBE] = {.keys = "", .arguments = ""},
    [SCRIPT_TAKE] =
        {.keys = "", .arguments = "vtkxfsi", .by_lock = true, .takes = true, .counts = true},
    [SCRIPT_RENEW_FENCED] = {.keys = "c", .arguments = "vtfi", .counts = true},
    [SCRIPT_STAY] = {.keys = "", .arguments = "vt", .stays = true},
    [SCRIPT_INSPECT] = {.keys = "rc", .arguments = "l"},
    [SCRIPT_PERMIT] =
        {.keys = "", .arguments = "vtfip", .takes = true, .counts = true, .reports_free = true},
    [SCRIPT_SHARE] = {.keys = "rw", .arguments = "vts", .takes = true},
    [SCRIPT_SHARE_RENEW] = {.keys = "r", .arguments = "vt"},
    [SCRIPT_SHARE_RELEASE] = {.keys = "r", .arguments = "v"},
    [SCRIPT_WRITE] = {.keys = "rw", .arguments = "vtn", .takes = true},
    [SCRIPT_QUEUE] =
        {.keys = "", .arguments = "vtceiq", .has_channel = true, .takes = true, .counts = true},
    [SCRIPT_QUEUE_SET] = {.keys = "",
                          .arguments = "vtkceiq",
                          .has_channel = true,
                          .by_lock = true,
                          .takes = true,
                          .counts = true},
    [SCRIPT_LEAVE] = {.keys = "", .arguments = "vq"},
    [SCRIPT_SHARE_QUEUE] = {.keys = "rw",
                            .arguments = "vtceiq",
                            .has_channel = true,
                            .takes = true},
    [SCRIPT_SHARE_LEAVE] = {.keys = "r", .arguments = "vq"},
    [SCRIPT_QUEUE_PERMIT] = {.keys = "",
                             .arguments = "vtcxiqp",
                             .has_channel = true,
                             .takes = true,
                             .counts = true,
                             .reports_free = true},
    [SCRIPT_PERMIT_RELEASE] = {.keys = "", .arguments = "vq"},
    [SCRIPT_PASS] = {.keys = "", .arguments = "e"},
    [SCRIPT_WRITE_FENCED] = {.keys = "rwc", .arguments = "vtnfi", .takes = true, .counts = true},
};
