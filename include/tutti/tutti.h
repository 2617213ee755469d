/* tutti.h: all of Tutti. */
#ifndef TUTTI_H
#define TUTTI_H

#include "tutti/base.h"
#include "tutti/callbacks.h"
#include "tutti/checkpoint.h"
#include "tutti/cluster.h"
#include "tutti/comm.h"
#include "tutti/coordinator.h"
#include "tutti/data.h"
#include "tutti/dataset.h"
#include "tutti/files.h"
#include "tutti/generate.h"
#include "tutti/gradients.h"
#include "tutti/graph.h"
#include "tutti/graphdef.h"
#include "tutti/inspect.h"
#include "tutti/job.h"
#include "tutti/model.h"
#include "tutti/onnx.h"
#include "tutti/op.h"
#include "tutti/ops.h"
#include "tutti/optimizer.h"
#include "tutti/quantize.h"
#include "tutti/session.h"
#include "tutti/sparse.h"
#include "tutti/strategy.h"
#include "tutti/tape.h"
#include "tutti/tensor.h"
#include "tutti/tokenizer.h"
#include "tutti/train_and_evaluate.h"

#endif
