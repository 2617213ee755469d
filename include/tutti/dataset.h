/* clang-format off */
/* dataset.h: data as pull pipelines.
 *
 *     tutti_dataset *train = tutti_prefetch(tutti_batch(tutti_shuffle(tutti_mnist(job, "train"), 10000), 64), 2);
 *     TUTTI_EACH_BATCH(train, x, y) { … }
 *
 * A dataset says how elements are made; they are made when somebody iterates. (Sources that hold
 * their data in memory read their files at once.) An element is a list of 1 … 16 tensors, its
 * components, each with a name: "x" and "y" unless the source or tutti_name_components gives others.
 *
 * The job owns datasets and iterators: nothing has to be released. A call that cannot make its dataset
 * gives NULL and leaves its error with the job; NULL for a dataset gives NULL, quietly.
 *
 * Order is a function of (seed, epoch, index): of the job's seed or `.seed`, of the epoch that is
 * iterated, and of nothing else, so that it is the same for any number of threads and can be
 * continued anywhere.
 *
 * Datasets are made, and elements taken, on one thread at a time; transforms that use threads have
 * their own. */
/* clang-format on */
#ifndef TUTTI_DATASET_H
#define TUTTI_DATASET_H

#include "tutti/job.h"
#include "tutti/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_dataset tutti_dataset;
typedef struct tutti_iterator tutti_iterator;

/* How the processes of a job share a dataset (tutti_strategy_options, --set shard=NAME). Every
 * element is seen once an epoch by one of them, except when it is off. */
typedef enum tutti_shard_policy {
    TUTTI_SHARD_AUTO,    /* by element, unless reading everything everywhere would cost too much */
    TUTTI_SHARD_ELEMENT, /* the rows of every batch: batches are those of one process */
    TUTTI_SHARD_FILE,    /* each process reads some of the files */
    TUTTI_SHARD_BYTES,   /* each process reads a range of the files' bytes */
    TUTTI_SHARD_OFF,     /* each process reads everything */
} tutti_shard_policy;

#define TUTTI_MAX_COMPONENTS 16
#define TUTTI_UNKNOWN (-1) /* a cardinality that is not known before the end */
#define TUTTI_ENDLESS (-2) /* the cardinality of tutti_repeat(ds, 0) */

/* ---- elements ---- */

typedef struct tutti_element {
    int count; /* of components; 0: the data has ended */
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    uint64_t epoch; /* where a map's element stands: its number in the epoch, and 64 random bits */
    int64_t index;  /* that follow from the seed, epoch and index alone, for augmentation */
    uint64_t random;
    int64_t rows; /* of the whole batch, where a strategy gave this process some of it; 0: all */
    bool own;     /* as many as this process had: give them to tutti_run with .own_rows */
} tutti_element;

/* Puts a tensor, whose reference it takes, in the place of component `which`, or behind the last.
 */
TUTTI_API tutti_status tutti_element_set(tutti_element *element, int which, tutti_tensor *tensor);
/* Gives all components back and makes the element empty. */
TUTTI_API void tutti_element_release(tutti_element *element);

/* What is known of a dataset without reading it. */
typedef struct tutti_dataset_info {
    int components;
    const char *names[TUTTI_MAX_COMPONENTS];
    tutti_type types[TUTTI_MAX_COMPONENTS]; /* TUTTI_ANY where a dimension is not known; dtype
                                               TUTTI_NO_DTYPE and rank -1 where nothing is */
    int64_t cardinality;                    /* elements of an epoch, TUTTI_UNKNOWN, TUTTI_ENDLESS */
    int64_t batch;                          /* rows of an element; 0 when it is not batched */
    int64_t classes;                        /* of the labels; 0 when not known */
    bool random_access;                     /* any element can be had at once */
    bool reorders;                          /* each epoch has an order of its own: shuffled */
} tutti_dataset_info;
TUTTI_API tutti_status tutti_dataset_describe(const tutti_dataset *dataset,
                                              tutti_dataset_info *ret_info);
/* Elements of an epoch, TUTTI_UNKNOWN (also for NULL) or TUTTI_ENDLESS. */
TUTTI_API int64_t tutti_cardinality(const tutti_dataset *dataset);
/* The first element of epoch 0, empty when there is none; the caller releases it. For shapes that
 * only data can tell. */
TUTTI_API tutti_status tutti_dataset_peek(tutti_dataset *dataset, tutti_element *ret_element);
/* The pipeline as text, from malloc: "prefetch(batch(shuffle(mnist)))". */
TUTTI_API tutti_status tutti_dataset_print(const tutti_dataset *dataset, char **ret_text);
TUTTI_API tutti_job *tutti_dataset_job(const tutti_dataset *dataset);

/* ---- sources ---- */

#define TUTTI_TENSOR_LIST(...)                                                                     \
    (int)(sizeof((tutti_tensor *[]){__VA_ARGS__}) / sizeof(tutti_tensor *)), (tutti_tensor *[])    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Rows along axis 0 of tensors with equally many: element i is row i of each. The tensors are
 * retained and must not change. */
TUTTI_API tutti_dataset *tutti_from_tensor_slices(tutti_job *job, int count,
                                                  tutti_tensor *const *tensors);
/* tutti_from_tensor_slices(job, images, labels) */
#define tutti_from_tensor_slices(job, ...)                                                         \
    TUTTI_AT(tutti_from_tensor_slices((job), TUTTI_TENSOR_LIST(__VA_ARGS__)))

/* Scalars i64 start, start + step, … before stop. */
TUTTI_API tutti_dataset *tutti_range_dataset(tutti_job *job, int64_t start, int64_t stop,
                                             int64_t step);
#define tutti_range_dataset(job, start, stop, step)                                                \
    TUTTI_AT(tutti_range_dataset((job), (start), (stop), (step)))

/* Elements from the user's code. `next` puts components into the empty element, or leaves it empty
 * at the end. `reset` begins an epoch; without it the data can be read once. One iterator at a time
 * may be open. Called on the thread that iterates, or on that of tutti_prefetch. */
typedef struct tutti_generator {
    tutti_status (*next)(void *context, tutti_element *ret_element);
    tutti_status (*reset)(void *context, uint64_t epoch); /* (optional) */
    void *context;
    int components;                         /* 0: found out from the first element: then */
    tutti_type types[TUTTI_MAX_COMPONENTS]; /* nothing of these is used; checked where given */
    const char *names[TUTTI_MAX_COMPONENTS];
    int64_t cardinality; /* 0 or TUTTI_UNKNOWN: not known */
} tutti_generator;
TUTTI_API tutti_dataset *tutti_from_generator(tutti_job *job, const tutti_generator *generator);
#define tutti_from_generator(...) TUTTI_AT(tutti_from_generator(__VA_ARGS__))

/* The lines of a text file (also gzip), without their ends, as string scalars "line". */
TUTTI_API tutti_dataset *tutti_text_lines(tutti_job *job, const char *path);
#define tutti_text_lines(job, path) TUTTI_AT(tutti_text_lines((job), (path)))

/* The lines of text files, one after the other, as string scalars "line": as tutti_text_lines, but
 * read as they are asked for, so that files may be larger than memory. gzip files are unpacked. */
typedef struct tutti_text_files_options {
    size_t struct_size;
    int count; /* of files; 0: the one path given */
    const char *const *paths;
} tutti_text_files_options;
TUTTI_API tutti_dataset *tutti_text_files_with(tutti_job *job, const char *path,
                                               const tutti_text_files_options *options);
/* tutti_text_files(job, "corpus.txt"), tutti_text_files(job, NULL, .count = 8, .paths = names) */
#define tutti_text_files(job, ...)                                                                 \
    TUTTI_AT(tutti_text_files_with((job), TUTTI_ONE_(tutti_text_files_options, __VA_ARGS__, )))

/* A file of comma-separated values (also gzip), with a header line. Each column is a component with
 * the column's name: i64, f32 (missing values are NaN) or string, whichever its cells allow.
 * `columns` chooses some, in that order; `label` puts one last, and texts there become i64 numbers
 * of classes, in the texts' order; `stack` makes one f32[columns] component "x" of all the others.
 * The file is read when the dataset is made. */
typedef struct tutti_csv_settings {
    size_t struct_size;
    const char *label;
    const char *columns[TUTTI_MAX_COMPONENTS];
    char separator;      /* ',' */
    bool stack;          /* all columns but the label must be numbers */
    bool no_header;      /* the columns are named "0", "1", … */
    const char *missing; /* a cell that holds no value, beside the empty one */
} tutti_csv_settings;
TUTTI_API tutti_dataset *tutti_csv_with(tutti_job *job, const char *path,
                                        const tutti_csv_settings *settings);
/* tutti_csv(job, "iris.csv", .label = "species", .stack = true) */
#define tutti_csv(job, ...)                                                                        \
    TUTTI_AT(tutti_csv_with((job), TUTTI_ONE_(tutti_csv_settings, __VA_ARGS__, )))

/* Rows and labels from IDX files (also gzip). Rows become f32: bytes in [0,1], other types as they
 * are; images [height,width] get a channel axis. Labels, of any integer type, become i64. `labels`
 * NULL: rows alone. */
TUTTI_API tutti_dataset *tutti_idx(tutti_job *job, const char *images, const char *labels);
#define tutti_idx(job, images, labels) TUTTI_AT(tutti_idx((job), (images), (labels)))

/* "train" or "test": images "x" f32 [28,28,1] in [0,1], labels "y" i64. MNIST from the folder of
 * --data, or as many drawn digits (60,000 and 10,000). */
TUTTI_API tutti_dataset *tutti_mnist(tutti_job *job, const char *split);
#define tutti_mnist(job, split) TUTTI_AT(tutti_mnist((job), (split)))
/* "train" or "test": images f32 [32,32,3] in [0,1], labels i64, ten classes. CIFAR-10's binary
 * files from the folder of --data, or as many generated images (50,000 and 10,000). */
TUTTI_API tutti_dataset *tutti_cifar10(tutti_job *job, const char *split);
#define tutti_cifar10(job, split) TUTTI_AT(tutti_cifar10((job), (split)))

/* Windows of a long row of tokens, for language models: "x" i32 [length] and "y", the same one
 * token later. Window i begins at token i * length; what is left over at the end is not used. Or
 * windows begin anywhere, in each epoch at other places. */
typedef struct tutti_tokens_options {
    size_t struct_size;
    int64_t vocabulary; /* a token that is none of 0 to vocabulary - 1 is an error; 0: any may be */
    bool random;        /* as many windows, each at a place drawn by seed, epoch and number */
    uint64_t seed;      /* 0: the job's */
    int64_t token_bytes; /* in a file without a header: 2 or 4; 0: 2 */
} tutti_tokens_options;
/* Of integers [tokens], which are retained and must not change. */
TUTTI_API tutti_dataset *tutti_token_windows_with(tutti_job *job, tutti_tensor *tokens,
                                                  int64_t length,
                                                  const tutti_tokens_options *options);
/* tutti_token_windows(job, ids, 1024) */
#define tutti_token_windows(job, tokens, ...)                                                      \
    TUTTI_AT(tutti_token_windows_with((job), (tokens),                                             \
                                      TUTTI_ONE_(tutti_tokens_options, __VA_ARGS__, )))
/* Of a file of unsigned integers of 16 bits, one behind the other, as nanoGPT writes them, or with
 * llm.c's header, which also says where they have 32 bits. Read as they are asked for. */
TUTTI_API tutti_dataset *tutti_token_file_with(tutti_job *job, const char *path, int64_t length,
                                               const tutti_tokens_options *options);
/* tutti_token_file(job, "train.bin", 1024, .vocabulary = 50257) */
#define tutti_token_file(job, path, ...)                                                           \
    TUTTI_AT(tutti_token_file_with((job), (path), TUTTI_ONE_(tutti_tokens_options, __VA_ARGS__, )))

/* Rows of NPY files, one component for each; named after the files. */
TUTTI_API tutti_dataset *tutti_npy_dataset(tutti_job *job, int count, const char *const *paths);
#define tutti_npy_dataset(...) TUTTI_AT(tutti_npy_dataset(__VA_ARGS__))
/* Rows of the arrays in an NPZ file; components have the arrays' names, in the file's order. */
TUTTI_API tutti_dataset *tutti_npz_dataset(tutti_job *job, const char *path);
#define tutti_npz_dataset(job, path) TUTTI_AT(tutti_npz_dataset((job), (path)))

/* Records of TFRecord files, one after the other. Without features: string scalars "record". With
 * features: tf.train.Examples, one component for each. */
typedef struct tutti_feature {
    const char *name;
    tutti_dtype dtype; /* f32, i64 or string */
    int rank;
    int64_t dims[TUTTI_MAX_RANK]; /* rank 1 with TUTTI_ANY: as many as there are */
    bool optional;                /* zeros, or none, where an Example has no such feature */
} tutti_feature;
typedef struct tutti_tfrecords_options {
    size_t struct_size;
    int count; /* of files; 0: the one path given */
    const char *const *paths;
    struct {
        int count;
        const tutti_feature *list;
    } features;
} tutti_tfrecords_options;
#define TUTTI_FEATURES(...)                                                                        \
    {                                                                                              \
        sizeof((tutti_feature[]){__VA_ARGS__}) / sizeof(tutti_feature), (tutti_feature[])          \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
TUTTI_API tutti_dataset *tutti_tfrecords_with(tutti_job *job, const char *path,
                                              const tutti_tfrecords_options *options);
/* tutti_tfrecords(job, "a.tfrecord", .features = TUTTI_FEATURES({"age", TUTTI_I64})) */
#define tutti_tfrecords(job, ...)                                                                  \
    TUTTI_AT(tutti_tfrecords_with((job), TUTTI_ONE_(tutti_tfrecords_options, __VA_ARGS__, )))

/* JPEG and PNG files in a folder; each folder in it, by name, is a class, also one without any
 * pictures. Images f32
 * [height,width,channels] in [0,1], resized bilinearly; labels i64. Files are decoded when their
 * turn comes. */
typedef struct tutti_image_folder_options {
    size_t struct_size;
    int64_t height, width, channels; /* 256, 256, 3 */
} tutti_image_folder_options;
TUTTI_API tutti_dataset *tutti_image_folder_with(tutti_job *job, const char *folder,
                                                 const tutti_image_folder_options *options);
#define tutti_image_folder(job, ...)                                                               \
    TUTTI_AT(tutti_image_folder_with((job), TUTTI_ONE_(tutti_image_folder_options, __VA_ARGS__, )))

/* ---- datasets by name ---- */

typedef struct tutti_dataset_split {
    const char *name;
    int64_t examples;
} tutti_dataset_split;
/* One dataset that has a name.
 *
 * tables: tutti_dataset_kind
 */
typedef struct tutti_dataset_kind {
    const char *name, *doc;
    tutti_dataset_split splits[4]; /* a name of NULL ends the list */
    int64_t classes;
    tutti_dataset *(*open)(tutti_job *job, const char *split);
} tutti_dataset_kind;
/* Number `index` of the kinds known, or NULL behind the last. */
TUTTI_API const tutti_dataset_kind *tutti_dataset_kind_at(int index);

typedef struct tutti_load_dataset_options {
    size_t struct_size;
    bool one_hot; /* labels f32 [classes] instead of numbers */
} tutti_load_dataset_options;
TUTTI_API tutti_dataset *tutti_load_dataset_with(tutti_job *job, const char *name,
                                                 const char *split,
                                                 const tutti_load_dataset_options *options);
/* tutti_load_dataset(job, "mnist", "train", .one_hot = true) */
#define tutti_load_dataset(job, name, ...)                                                         \
    TUTTI_AT(tutti_load_dataset_with((job), (name),                                                \
                                     TUTTI_ONE_(tutti_load_dataset_options, __VA_ARGS__, )))

/* ---- transforms ---- */

/* Changes an element by tutti_element_set; the tensors it finds there may be shared and must not be
 * written to. With `.parallel`, several threads call it at once, for different elements; the order
 * of elements stays. */
typedef tutti_status tutti_map_fn(void *context, tutti_element *element);
typedef struct tutti_map_options {
    size_t struct_size;
    void *context;
    int parallel;                           /* threads; 0 and 1: the iterating thread */
    uint64_t seed;                          /* of element->random; 0: the job's */
    int components;                         /* what the function gives, where it is known: */
    tutti_type types[TUTTI_MAX_COMPONENTS]; /* 0 components: found out from the elements */
    const char *names[TUTTI_MAX_COMPONENTS];
} tutti_map_options;
TUTTI_API tutti_dataset *tutti_map_with(tutti_dataset *dataset, tutti_map_fn *function,
                                        const tutti_map_options *options);
/* tutti_map(ds, rotate, .parallel = 4) */
#define tutti_map(dataset, ...)                                                                    \
    TUTTI_AT(tutti_map_with((dataset), TUTTI_ONE_(tutti_map_options, __VA_ARGS__, )))

/* Keeps the elements for which the function is true. */
typedef bool tutti_filter_fn(void *context, const tutti_element *element);
TUTTI_API tutti_dataset *tutti_filter(tutti_dataset *dataset, tutti_filter_fn *function,
                                      void *context);
#define tutti_filter(dataset, function, context)                                                   \
    TUTTI_AT(tutti_filter((dataset), (function), (context)))

/* Reads its input once, as epoch 0, and serves later epochs from memory, or from a file that later
 * runs find again. The file is written atomically when the input was read to its end; one that
 * belongs to other data (names, types, number of elements) is refused, and so is a damaged one. */
typedef struct tutti_cache_options {
    size_t struct_size;
    const char *file;
} tutti_cache_options;
TUTTI_API tutti_dataset *tutti_cache_with(tutti_dataset *dataset,
                                          const tutti_cache_options *options);
#define tutti_cache(...) TUTTI_AT(tutti_cache_with(TUTTI_ONE_(tutti_cache_options, __VA_ARGS__, )))

/* Another order in each epoch. buffer > 0: each element comes from the `buffer` elements that are
 * next; 0: from all that are left (the order is tutti_shuffled(seed, epoch, n, …)). */
typedef struct tutti_shuffle_options {
    size_t struct_size;
    uint64_t seed;   /* 0: the job's */
    bool same_order; /* in every epoch that of epoch 0 */
} tutti_shuffle_options;
TUTTI_API tutti_dataset *tutti_shuffle_with(tutti_dataset *dataset, int64_t buffer,
                                            const tutti_shuffle_options *options);
#define tutti_shuffle(dataset, ...)                                                                \
    TUTTI_AT(tutti_shuffle_with((dataset), TUTTI_ONE_(tutti_shuffle_options, __VA_ARGS__, )))

/* Its input `times` times over, endlessly with 0. Each round is an epoch of its own. */
TUTTI_API tutti_dataset *tutti_repeat(tutti_dataset *dataset, int64_t times);
#define tutti_repeat(dataset, times) TUTTI_AT(tutti_repeat((dataset), (times)))

/* `size` elements as one, along a new axis 0. The last may be smaller. */
typedef struct tutti_batch_options {
    size_t struct_size;
    bool drop_remainder;
} tutti_batch_options;
TUTTI_API tutti_dataset *tutti_batch_with(tutti_dataset *dataset, int64_t size,
                                          const tutti_batch_options *options);
#define tutti_batch(dataset, ...)                                                                  \
    TUTTI_AT(tutti_batch_with((dataset), TUTTI_ONE_(tutti_batch_options, __VA_ARGS__, )))

/* Elements of different shapes as one: each axis is padded at its end to the longest in the batch,
 * or axis 0 to `lengths` of the component where that is > 0. */
typedef struct tutti_padded_batch_options {
    size_t struct_size;
    bool drop_remainder;
    bool truncate; /* cuts what is longer than `lengths`, instead of failing */
    int64_t lengths[TUTTI_MAX_COMPONENTS];
    double values[TUTTI_MAX_COMPONENTS]; /* what is put in; strings are padded with "" */
} tutti_padded_batch_options;
TUTTI_API tutti_dataset *tutti_padded_batch_with(tutti_dataset *dataset, int64_t size,
                                                 const tutti_padded_batch_options *options);
#define tutti_padded_batch(dataset, ...)                                                           \
    TUTTI_AT(                                                                                      \
        tutti_padded_batch_with((dataset), TUTTI_ONE_(tutti_padded_batch_options, __VA_ARGS__, )))

/* The rows of each element, one after the other. */
TUTTI_API tutti_dataset *tutti_unbatch(tutti_dataset *dataset);
#define tutti_unbatch(dataset) TUTTI_AT(tutti_unbatch(dataset))

/* Makes up to `count` elements ahead, on a thread of its own, which begins with the first that is
 * asked for. Closing the iterator waits for the one element that is being made. */
TUTTI_API tutti_dataset *tutti_prefetch(tutti_dataset *dataset, int64_t count);
#define tutti_prefetch(dataset, count) TUTTI_AT(tutti_prefetch((dataset), (count)))

#define TUTTI_DATASETS(...)                                                                        \
    {                                                                                              \
        sizeof((tutti_dataset *[]){__VA_ARGS__}) / sizeof(tutti_dataset *), (tutti_dataset *[])    \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* `block` elements of each dataset in turn; one that has ended is passed over. Of `cycle` datasets
 * at a time (0: of all); the next takes the place of one that has ended. */
typedef struct tutti_interleave_options {
    size_t struct_size;
    struct {
        int count;
        tutti_dataset *const *list;
    } datasets;
    int64_t cycle, block;
} tutti_interleave_options;
TUTTI_API tutti_dataset *tutti_interleave_with(const tutti_interleave_options *options);
/* tutti_interleave(.datasets = TUTTI_DATASETS(a, b), .block = 2) */
#define tutti_interleave(...)                                                                      \
    TUTTI_AT(tutti_interleave_with(TUTTI_OPTIONS(tutti_interleave_options, __VA_ARGS__)))

/* The components of several datasets side by side, as long as the shortest. */
TUTTI_API tutti_dataset *tutti_zip(int count, tutti_dataset *const *datasets);
#define tutti_zip(...)                                                                             \
    TUTTI_AT(tutti_zip((int)(sizeof((tutti_dataset *[]){__VA_ARGS__}) / sizeof(void *)),           \
                       (tutti_dataset *[]){__VA_ARGS__}))

/* The first `count` elements; those behind them. */
TUTTI_API tutti_dataset *tutti_take(tutti_dataset *dataset, int64_t count);
#define tutti_take(dataset, count) TUTTI_AT(tutti_take((dataset), (count)))
TUTTI_API tutti_dataset *tutti_skip(tutti_dataset *dataset, int64_t count);
#define tutti_skip(dataset, count) TUTTI_AT(tutti_skip((dataset), (count)))
/* The elements index, index + count, index + 2 count, …: what worker `index` of `count` gets. */
TUTTI_API tutti_dataset *tutti_shard(tutti_dataset *dataset, int64_t count, int64_t index);
#define tutti_shard(dataset, count, index) TUTTI_AT(tutti_shard((dataset), (count), (index)))

/* Windows of `size` elements `stride` apart, stacked along a new axis 0; each begins `shift`
 * elements behind the last. Windows that are not full are left out unless `keep_remainder`. */
typedef struct tutti_window_options {
    size_t struct_size;
    int64_t shift;  /* 0: size */
    int64_t stride; /* 0: 1 */
    bool keep_remainder;
} tutti_window_options;
TUTTI_API tutti_dataset *tutti_window_with(tutti_dataset *dataset, int64_t size,
                                           const tutti_window_options *options);
#define tutti_window(dataset, ...)                                                                 \
    TUTTI_AT(tutti_window_with((dataset), TUTTI_ONE_(tutti_window_options, __VA_ARGS__, )))

/* Component `component` (-1: the last), numbers of classes, as f32 vectors with a one at the class.
 * `classes` 0: as many as the source says. */
TUTTI_API tutti_dataset *tutti_one_hot_labels(tutti_dataset *dataset, int component,
                                              int64_t classes);
#define tutti_one_hot_labels(dataset, component, classes)                                          \
    TUTTI_AT(tutti_one_hot_labels((dataset), (component), (classes)))

/* Components as another element type, converted as tutti_tensor_cast does; `components` names them,
 * none: all but strings. */
typedef struct tutti_cast_components_options {
    size_t struct_size;
    const char *components[TUTTI_MAX_COMPONENTS];
} tutti_cast_components_options;
TUTTI_API tutti_dataset *tutti_dataset_cast(tutti_dataset *dataset, tutti_dtype dtype,
                                            const tutti_cast_components_options *options);
/* tutti_cast_components(ds, TUTTI_F32, .components = {"x", "weight"}) */
#define tutti_cast_components(dataset, dtype, ...)                                                 \
    TUTTI_AT(tutti_dataset_cast((dataset), (dtype),                                                \
                                TUTTI_OPTIONS(tutti_cast_components_options, __VA_ARGS__)))

/* Other names for the components: tutti_name_components(ds, "title", "body", "priority"). */
TUTTI_API tutti_dataset *tutti_name_components(tutti_dataset *dataset, int count,
                                               const char *const *names);
#define tutti_name_components(dataset, ...)                                                        \
    TUTTI_AT(tutti_name_components((dataset),                                                      \
                                   (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),  \
                                   (const char *[]){__VA_ARGS__}))

/* ---- iteration ---- */

/* Begins an epoch; NULL after an error. The job closes iterators that are left open.
 *
 * In a loop with tutti_progress, checkpoints hold how far the dataset's last iterator is. After
 * --resume, the one of that epoch that is made (or open, when tutti_progress_open is called) goes
 * on from there; later epochs begin as always, and one that the checkpoint has left behind is the
 * job's error: give `epoch` tutti_progress_current_epoch, not a number that begins anew with the
 * process. */
TUTTI_API tutti_iterator *tutti_iterate(tutti_dataset *dataset, uint64_t epoch);
/* The next element, for the caller to release; one without components at the end. A failure is the
 * job's error too, and says which element of which transform; the iterator then stays failed. */
TUTTI_API tutti_status tutti_next_element(tutti_iterator *iterator, tutti_element *ret_element);
/* Passes over up to `count` elements, as cheaply as the pipeline allows. */
TUTTI_API tutti_status tutti_iterator_skip(tutti_iterator *iterator, int64_t count);
TUTTI_API void tutti_iterator_close(tutti_iterator *iterator); /* NULL is fine */
/* How long the caller was held up inside tutti_next_element, in all. */
TUTTI_API int64_t tutti_iterator_waited_ns(const tutti_iterator *iterator);

/* Where an iterator stands: plain numbers, to be stored and used in another process with the same
 * pipeline, seed and data. */
typedef struct tutti_position {
    uint64_t epoch;
    int64_t delivered; /* elements taken in that epoch */
    uint64_t pipeline; /* which pipeline it belongs to; of what tutti_distribute_from_function makes
                          the same in all processes */
    bool apart;        /* processes read elements of their own: another number of them may be at the
                          end before so many */
} tutti_position;
TUTTI_API void tutti_iterator_save(const tutti_iterator *iterator, tutti_position *ret_position);
/* An iterator that gives what the saved one would have given next. */
TUTTI_API tutti_iterator *tutti_iterate_from(tutti_dataset *dataset,
                                             const tutti_position *position);

/* For hand-written loops: the next batch, epoch after epoch, by its first components; NULL in place
 * of one that is not wanted. The tensors are the dataset's until the next call; NULL after a
 * failure, as of elements with fewer components. */
TUTTI_API tutti_status tutti_next_components(tutti_dataset *dataset, int count,
                                             tutti_tensor **const *ret_components);
/* tutti_next_batch(data, &x), tutti_next_batch(data, &x, &y, &weight) */
#define tutti_next_batch(dataset, ...)                                                             \
    tutti_next_components((dataset),                                                               \
                          (int)(sizeof((tutti_tensor **[]){__VA_ARGS__}) / sizeof(void *)),        \
                          (tutti_tensor * *[]){__VA_ARGS__})

/* One epoch, batch by batch: TUTTI_EACH_BATCH(train, x, y) { … }. Declares x and y, or as many
 * names as are given (1 … 16), for the first components; they live until the round's end. Elements
 * with fewer components are the job's error. Each use is the dataset's next epoch. break and
 * continue work as in any loop. */
typedef struct tutti_each {
    tutti_iterator *iterator;
    tutti_element element;
    bool over;
} tutti_each;
TUTTI_API tutti_each tutti_each_begin(tutti_dataset *dataset);
TUTTI_API bool tutti_each_next(tutti_each *each, int count, tutti_tensor **const *ret_components);
TUTTI_API void tutti_each_end(tutti_each *each);
#define TUTTI_EACH_BATCH(dataset, ...)                                                             \
    TUTTI_EACH_OF_(dataset, TUTTI_PASTE_(tutti_each_, TUTTI_FIRST_(__VA_ARGS__, 0)),               \
                   TUTTI_HOW_MANY_(__VA_ARGS__), __VA_ARGS__)
#define TUTTI_EACH_OF_(dataset, each, count, ...)                                                  \
    for (tutti_each each = tutti_each_begin(dataset); !each.over; tutti_each_end(&each))           \
        for (tutti_tensor TUTTI_FOR_(count, TUTTI_POINTER_, __VA_ARGS__); tutti_each_next(         \
                 &each, count,                                                                     \
                 (tutti_tensor * *[]){TUTTI_FOR_(count, TUTTI_ADDRESS_, __VA_ARGS__)});)

/* clang-format off */
#define TUTTI_POINTER_(name) *name = NULL
#define TUTTI_ADDRESS_(name) &name
#define TUTTI_FIRST_(first, ...) first
#define TUTTI_PASTE_(a, b) TUTTI_PASTED_(a, b)
#define TUTTI_PASTED_(a, b) a##b
#define TUTTI_HOW_MANY_(...) TUTTI_17TH_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TUTTI_17TH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
/* m(first), m(second), … */
#define TUTTI_FOR_(count, m, ...) TUTTI_PASTE_(TUTTI_FOR_, count)(m, __VA_ARGS__)
#define TUTTI_FOR_1(m, name) m(name)
#define TUTTI_FOR_2(m, name, ...) m(name), TUTTI_FOR_1(m, __VA_ARGS__)
#define TUTTI_FOR_3(m, name, ...) m(name), TUTTI_FOR_2(m, __VA_ARGS__)
#define TUTTI_FOR_4(m, name, ...) m(name), TUTTI_FOR_3(m, __VA_ARGS__)
#define TUTTI_FOR_5(m, name, ...) m(name), TUTTI_FOR_4(m, __VA_ARGS__)
#define TUTTI_FOR_6(m, name, ...) m(name), TUTTI_FOR_5(m, __VA_ARGS__)
#define TUTTI_FOR_7(m, name, ...) m(name), TUTTI_FOR_6(m, __VA_ARGS__)
#define TUTTI_FOR_8(m, name, ...) m(name), TUTTI_FOR_7(m, __VA_ARGS__)
#define TUTTI_FOR_9(m, name, ...) m(name), TUTTI_FOR_8(m, __VA_ARGS__)
#define TUTTI_FOR_10(m, name, ...) m(name), TUTTI_FOR_9(m, __VA_ARGS__)
#define TUTTI_FOR_11(m, name, ...) m(name), TUTTI_FOR_10(m, __VA_ARGS__)
#define TUTTI_FOR_12(m, name, ...) m(name), TUTTI_FOR_11(m, __VA_ARGS__)
#define TUTTI_FOR_13(m, name, ...) m(name), TUTTI_FOR_12(m, __VA_ARGS__)
#define TUTTI_FOR_14(m, name, ...) m(name), TUTTI_FOR_13(m, __VA_ARGS__)
#define TUTTI_FOR_15(m, name, ...) m(name), TUTTI_FOR_14(m, __VA_ARGS__)
#define TUTTI_FOR_16(m, name, ...) m(name), TUTTI_FOR_15(m, __VA_ARGS__)
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
