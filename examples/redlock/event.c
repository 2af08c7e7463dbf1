#include "event.h"

#include "talk.h"

#include <stdio.h>
#include <stdlib.h>

void event_begin(struct event *event, const char *name) {
    *event = (struct event){0};
    event->json.stream = open_memstream(&event->line, &event->length);
    if (event->json.stream == NULL) {
        event->json.stream = stderr; /* out of memory: a line in pieces is better than none */
    }
    json_begin(&event->json, NULL, '{');
    json_text(&event->json, "event", name);
    json_number(&event->json, "at_ms", (int64_t)talk_wall_ms());
}

void event_end(struct event *event) {
    json_end(&event->json, '}');
    json_line(&event->json);
    if (event->json.stream == stderr) {
        return;
    }
    if (fclose(event->json.stream) == 0) {
        fwrite(event->line, 1, event->length, stderr);
    }
    free(event->line);
}
