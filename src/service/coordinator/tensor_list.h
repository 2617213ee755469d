/* tensor_list.h: tensors of numbers, one behind the other, as bytes: arguments and results of
 * closures. */
#ifndef TUTTI_SERVICE_COORDINATOR_TENSOR_LIST_H
#define TUTTI_SERVICE_COORDINATOR_TENSOR_LIST_H

#include "service/store/saved.h"
#include "tutti/tensor.h"

enum { TUTTI_CLOSURE_TENSORS = 64 }; /* at most */

/* One more behind those that are there. */
tutti_status tutti__tensor_list_add(tutti_text *list, tutti_tensor *tensor);
/* All of them; *ret_count of ret_tensors are the caller's. The bytes are hostile. */
tutti_status tutti__tensor_list_read(const void *data, size_t size, int *ret_count,
                                     tutti_tensor *ret_tensors[TUTTI_CLOSURE_TENSORS]);

#endif
