/* The command line: --name value or --name=value, checked before MPI_Init. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPOIL_OPTION "inject_wrong_answer"
#define OSU_OPTION "osu"

/* Before MPI_Init only the launcher's environment says which rank this is; without any it is a singleton. */
static bool is_first_rank(void) {
    const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *rank = getenv(names[i]);
        if (rank != NULL)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

__attribute__((format(printf, 2, 3))) _Noreturn static void refuse(const struct app *app, const char *format,
                                                                   ...) {
    if (is_first_rank()) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "%s: error: ", app->name);
        vfprintf(stderr, format, arguments);
        fprintf(stderr, "; see %s --help\n", app->name);
        va_end(arguments);
    } else {
        /* mpirun ends the other ranks at the first non-zero exit: rank 0 must have time to say what is wrong.
         */
        sleep(2);
    }
    exit(EXIT_USAGE);
}

static const char *placeholder(const struct option *option) {
    const char *names[] = {[OPTION_INTEGER] = "N",
                           [OPTION_NUMBER] = "NUMBER",
                           [OPTION_SIZES] = "XxYxZ",
                           [OPTION_CHOICE] = "NAME"};
    return names[option->kind];
}

static void print_names(const struct choice *choice) {
    for (int i = 0; choice->names[i] != NULL; i++)
        printf("%s%s", i > 0 ? ", " : "", choice->names[i]);
}

static void print_help(const struct app *app) {
    struct text defaults = {0};
    text_add_options(&defaults, app);
    printf("usage: %s [--name value | --name=value]...\n%s\n\n", app->name, app->title);
    for (int i = 0; i < app->option_count; i++) {
        const struct option *option = &app->options[i];
        printf("  --%s %s\n        %s (", option->name, placeholder(option), option->help);
        if (option->kind == OPTION_CHOICE)
            print_names(option->value);
        else
            printf("%.15g to %.15g", option->minimum, option->maximum);
        printf(")\n");
    }
    printf(
        "  --" SPOIL_OPTION "\n        damage the data before the check, which must then fail (exit code 3)\n"
        "%s  --help\n\nA dash inside a name may stand for its underscore. Defaults: %s\n",
        app->print_osu ? "  --" OSU_OPTION "\n        print a table as the OSU Micro-Benchmarks do, no JSON\n"
                       : "",
        defaults.at);
    free(defaults.at);
}

/* One integer at *text; moves *text behind it. strtoll alone would take blanks and a plus sign. */
static bool scan_integer(const char **text, int64_t *value) {
    char *end;
    if (!isdigit((unsigned char)(*text)[0]) && !((*text)[0] == '-' && isdigit((unsigned char)(*text)[1])))
        return false;
    errno = 0;
    *value = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static void check_range(const struct app *app, const struct option *option, const char *text, double value) {
    if (value >= option->minimum && value <= option->maximum)
        return;
    refuse(app, "--%s: '%s' is out of range; %.15g to %.15g is allowed", option->name, text, option->minimum,
           option->maximum);
}

static void set_integer(const struct app *app, const struct option *option, const char *text) {
    const char *end = text;
    int64_t value;
    if (!scan_integer(&end, &value) || *end != '\0')
        refuse(app, "--%s: '%s' is not an integer; %.15g to %.15g is allowed", option->name, text,
               option->minimum, option->maximum);
    check_range(app, option, text, (double)value);
    *(int64_t *)option->value = value;
}

static void set_number(const struct app *app, const struct option *option, const char *text) {
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]) || errno != 0)
        refuse(app, "--%s: '%s' is not a number; %.15g to %.15g is allowed", option->name, text,
               option->minimum, option->maximum);
    check_range(app, option, text, value);
    *(double *)option->value = value;
}

static void set_sizes(const struct app *app, const struct option *option, const char *text) {
    const char *end = text;
    int64_t *sizes = option->value;
    for (int i = 0; i < 3; i++) {
        if (!scan_integer(&end, &sizes[i]) || *end != (i < 2 ? 'x' : '\0'))
            refuse(app, "--%s: '%s' needs three sizes, as in 200x400x600", option->name, text);
        check_range(app, option, text, (double)sizes[i]);
        end++;
    }
}

static void set_choice(const struct app *app, const struct option *option, const char *text) {
    struct choice *choice = option->value;
    struct text known = {0};
    for (int i = 0; choice->names[i] != NULL; i++) {
        text_add(&known, "%s%s", i > 0 ? ", " : "", choice->names[i]);
        if (strcmp(choice->names[i], text) == 0) {
            choice->chosen = i;
            free(known.at);
            return;
        }
    }
    refuse(app, "--%s: '%s' is unknown; known: %s", option->name, text, known.at);
}

static void set_option(const struct app *app, const struct option *option, const char *text) {
    void (*const set[])(const struct app *, const struct option *,
                        const char *) = {[OPTION_INTEGER] = set_integer,
                                         [OPTION_NUMBER] = set_number,
                                         [OPTION_SIZES] = set_sizes,
                                         [OPTION_CHOICE] = set_choice};
    set[option->kind](app, option, text);
}

/* Whole names only; a dash may stand for an underscore. */
static bool is_named(const char *given, size_t length, const char *name) {
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (given[i] != name[i] && !(given[i] == '-' && name[i] == '_'))
            return false;
    return true;
}

_Noreturn static void refuse_unknown(const struct app *app, const char *argument) {
    struct text known = {0};
    for (int i = 0; i < app->option_count; i++)
        text_add(&known, "--%s, ", app->options[i].name);
    refuse(app, "unknown option '%s'; known: %s%s--" SPOIL_OPTION ", --help", argument,
           known.at ? known.at : "", app->print_osu ? "--" OSU_OPTION ", " : "");
}

static const struct option *find_option(const struct app *app, const char *argument, size_t length) {
    for (int i = 0; i < app->option_count; i++)
        if (strncmp(argument, "--", 2) == 0 && is_named(argument + 2, length - 2, app->options[i].name))
            return &app->options[i];
    refuse_unknown(app, argument);
}

static bool is_switch(const char *argument, const char *name) {
    return strncmp(argument, "--", 2) == 0 && is_named(argument + 2, strlen(argument + 2), name);
}

struct demand options_parse(const struct app *app, int argc, char **argv) {
    struct demand demand = {0};
    for (int i = 1; i < argc; i++) {
        size_t length = strcspn(argv[i], "=");
        if (strcmp(argv[i], "--help") == 0) {
            if (is_first_rank())
                print_help(app);
            exit(EXIT_SUCCESS);
        }
        if (is_switch(argv[i], SPOIL_OPTION)) {
            demand.spoil = true;
            continue;
        }
        if (app->print_osu && is_switch(argv[i], OSU_OPTION)) {
            demand.osu = true;
            continue;
        }
        const struct option *option = find_option(app, argv[i], length);
        if (argv[i][length] == '=')
            set_option(app, option, argv[i] + length + 1);
        else if (i + 1 < argc)
            set_option(app, option, argv[++i]);
        else
            refuse(app, "--%s: needs a value, as in --%s %s", option->name, option->name,
                   placeholder(option));
    }
    return demand;
}
