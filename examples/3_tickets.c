/* 3_tickets.c: a functional model with three inputs and two outputs: support tickets, each with a
 * title, a body and tags, get a priority and a department.
 *
 *     ./3_tickets        at least 0.98 of the test tickets go to the right department
 *
 * The tickets are made up here. Every department has words of its own, mixed with common ones, and
 * two tags that it is often given; a ticket is urgent when an urgent word stands in its title, or
 * its last tag is set. The program fails (exit 1) when it ends below that. */
#include <tutti/tutti.h>

enum { WORDS = 10000, TITLE = 20, BODY = 100, TAGS = 12, DEPARTMENTS = 4, URGENT = 40, OWN = 400 };

static uint64_t draw(uint64_t *state, uint64_t count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % count;
}

/* Frequent words have small numbers: 0 is padding, then urgent ones, then each department's, then
 * everybody's. The product of two draws falls off as words of a language do. */
static int32_t draw_word(uint64_t *state, uint64_t department)
{
    uint64_t own = URGENT + 1 + department * OWN, common = URGENT + 1 + DEPARTMENTS * OWN;
    if (draw(state, 100) < 20)
        return (int32_t)(own + draw(state, OWN) * draw(state, OWN) / OWN);
    return (int32_t)(common + draw(state, WORDS - common) * draw(state, WORDS) / WORDS);
}

/* Fills a text; returns how many of its words are urgent. */
static int write_text(uint64_t *state, uint64_t department, int count, uint64_t percent_urgent,
                      int32_t *words)
{
    int urgent = 0;
    for (int i = 0; i < count; i++) {
        bool is_urgent = draw(state, 1000) < percent_urgent * 10;
        words[i] = is_urgent ? (int32_t)(1 + draw(state, URGENT)) : draw_word(state, department);
        urgent += is_urgent;
    }
    return urgent;
}

/* Turns the number of a ticket into the ticket. */
static tutti_status write_ticket(void *context, tutti_element *element)
{
    uint64_t state = element->random ^ 0x9e3779b97f4a7c15u, department = draw(&state, DEPARTMENTS);
    int32_t title[TITLE], body[BODY];
    float tags[TAGS], priority;
    (void)context;
    bool urgent = write_text(&state, department, TITLE, 2, title) > 0;
    write_text(&state, department, BODY, 1, body);
    for (uint64_t i = 0; i < TAGS; i++)
        tags[i] = draw(&state, 100) < (i / 2 == department ? 50 : 10);
    priority = urgent || tags[TAGS - 1] > 0;
    const struct {
        tutti_dtype dtype;
        int rank;
        int64_t size;
        const void *data;
    } parts[] = {{TUTTI_I32, 1, TITLE, title},
                 {TUTTI_I32, 1, BODY, body},
                 {TUTTI_F32, 1, TAGS, tags},
                 {TUTTI_F32, 1, 1, &priority},
                 {TUTTI_I64, 0, 0, &(int64_t){(int64_t)department}}};
    for (int i = 0; i < 5; i++) {
        tutti_tensor *tensor;
        TUTTI_TRY(tutti_tensor_from(parts[i].dtype, parts[i].rank, &parts[i].size, parts[i].data,
                                    &tensor));
        TUTTI_TRY(tutti_element_set(element, i, tensor));
    }
    return TUTTI_OK;
}

static tutti_dataset *tickets(tutti_job *job, int64_t first, int64_t last)
{
    tutti_dataset *numbers = tutti_range_dataset(job, first, last, 1);
    return tutti_cache(tutti_map(
        numbers, write_ticket, .seed = (uint64_t)first + 1, .components = 5,
        .types = {TUTTI_TYPE(TUTTI_I32, TITLE), TUTTI_TYPE(TUTTI_I32, BODY),
                  TUTTI_TYPE(TUTTI_F32, TAGS), TUTTI_TYPE(TUTTI_F32, 1), TUTTI_TYPE(TUTTI_I64)},
        .names = {"title", "body", "tags", "priority", "department"}));
}

int main(int argc, char **argv)
{
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_no_other_flags(job, argc, argv);
    int64_t batch = tutti_flag_int(job, "batch", 32);
    tutti_dataset *train = tutti_batch(tutti_shuffle(tickets(job, 0, 20000), 0), batch);
    tutti_dataset *test = tutti_batch(tickets(job, 20000, 22000), 128);

    tutti_model *m = tutti_functional(job, .name = "tickets");
    tutti_sym title = tutti_input(m, "title", TUTTI_I32, TUTTI_ANY);
    tutti_sym body = tutti_input(m, "body", TUTTI_I32, TUTTI_ANY);
    tutti_sym tags = tutti_input(m, "tags", TUTTI_F32, TAGS);

    tutti_sym t = tutti_call(tutti_lstm(128), tutti_call(tutti_embedding(WORDS, 64), title));
    tutti_sym b = tutti_call(tutti_lstm(32), tutti_call(tutti_embedding(WORDS, 64), body));
    tutti_sym x = tutti_call(tutti_concatenate_layer(), t, b, tags);

    tutti_output(m, "priority", tutti_call(tutti_dense(1, .activation = TUTTI_SIGMOID), x));
    tutti_output(m, "department", tutti_call(tutti_dense(DEPARTMENTS), x));

    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 2e-3),
                  .losses =
                      TUTTI_LOSSES({"priority", tutti_binary_cross_entropy(), .weight = 1.0},
                                   {"department", tutti_sparse_cross_entropy(.from_logits = true),
                                    .weight = 0.2}),
                  .metrics = "priority:accuracy,department:accuracy");
    const tutti_history *history = tutti_fit(m, train, .epochs = 2, .validation = test);

    tutti_expect(job, "accuracy of departments",
                 tutti_history_get(history, "val_department_accuracy", -1), 0.98);
    return tutti_close(job);
}
