/* A growing string that holds the one JSON line. */
#include "internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void reserve(struct text *text, size_t bytes) {
    if (text->length + bytes <= text->capacity)
        return;
    text->capacity = 2 * (text->length + bytes);
    text->at = realloc(text->at, text->capacity);
    if (text->at == NULL)
        abort();
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(NULL, 0, format, arguments) + 1;
    va_end(arguments);
    reserve(text, (size_t)bytes);
    va_start(arguments, format);
    vsnprintf(text->at + text->length, (size_t)bytes, format, arguments);
    va_end(arguments);
    text->length += (size_t)bytes - 1;
}

void text_add_string(struct text *text, const char *string) {
    text_add(text, "\"");
    for (const char *c = string; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_add(text, "\\u%04x", (unsigned)*c);
        else
            text_add(text, "%c", *c);
    }
    text_add(text, "\"");
}

/* JSON knows no infinity and no NaN. */
void text_add_number(struct text *text, double number) {
    if (isfinite(number))
        text_add(text, "%.17g", number);
    else
        text_add(text, "null");
}

static void add_option(struct text *text, const struct option *option) {
    const int64_t *integer = option->value;
    const struct choice *choice = option->value;
    text_add(text, "\"%s\":", option->name);
    switch (option->kind) {
    case OPTION_INTEGER:
        text_add(text, "%" PRId64, *integer);
        break;
    case OPTION_NUMBER:
        text_add_number(text, *(const double *)option->value);
        break;
    case OPTION_CHOICE:
        text_add(text, "\"%s\"", choice->names[choice->chosen]);
        break;
    case OPTION_SIZES:
        text_add(text, "\"%" PRId64 "x%" PRId64 "x%" PRId64 "\"", integer[0], integer[1], integer[2]);
        break;
    }
}

void text_add_options(struct text *text, const struct app *app) {
    text_add(text, "{");
    for (int i = 0; i < app->option_count; i++) {
        text_add(text, i > 0 ? "," : "");
        add_option(text, &app->options[i]);
    }
    text_add(text, "}");
}
