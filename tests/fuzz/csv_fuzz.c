/* csv_fuzz.c: the first byte chooses delimiter and header, the rest is the text. */
#include "fuzz.h"
#include "io/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_csv csv;
    tutti_named_tensors table = {0};
    if (size == 0)
        return 0;
    tutti_csv_options options = {.delimiter = ",;\t|"[data[0] & 3],
                                 .no_header = (data[0] & 4) != 0,
                                 .missing = (data[0] & 8) != 0 ? "NA" : NULL};
    if (!went_well(tutti__csv_open(source_of(data + 1, size - 1), &options, &csv)))
        return 0;
    if (went_well(tutti__csv_table(&csv, &table))) {
        promise(table.count == csv.count);
        for (size_t i = 1; i < table.count; i++)
            promise(tutti_tensor_count(table.items[i].tensor) ==
                    tutti_tensor_count(table.items[0].tensor));
        tutti_named_tensors_clear(&table);
    }
    tutti__csv_close(&csv);
    return 0;
}
