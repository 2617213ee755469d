/* rules.c: TensorFlow's operators as ours: which rule is whose, ends, and operators that
 * are the same under another name. */
#include "bridge/graphdef/rules.h"

#include <string.h>

/* ---- the same operator under another name ---- */

static const char *const same[][2] = {
    {"Add", "add"},
    {"AddV2", "add"},
    {"Sub", "sub"},
    {"Mul", "mul"},
    {"RealDiv", "div"},
    {"FloorDiv", "floordiv"},
    {"FloorMod", "mod"},
    {"Maximum", "maximum"},
    {"Minimum", "minimum"},
    {"Pow", "pow"},
    {"Relu", "relu"},
    {"Relu6", "relu6"},
    {"Selu", "selu"},
    {"Sigmoid", "sigmoid"},
    {"Tanh", "tanh"},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"Exp", "exp"},
    {"Expm1", "expm1"},
    {"Log", "log"},
    {"Log1p", "log1p"},
    {"Sqrt", "sqrt"},
    {"Rsqrt", "rsqrt"},
    {"Square", "square"},
    {"Neg", "neg"},
    {"Abs", "abs"},
    {"Sign", "sign"},
    {"Floor", "floor"},
    {"Ceil", "ceil"},
    {"Round", "round"},
    {"Rint", "round"},
    {"Reciprocal", "reciprocal"},
    {"Inv", "reciprocal"},
    {"Sin", "sin"},
    {"Cos", "cos"},
    {"Tan", "tan"},
    {"Asin", "asin"},
    {"Acos", "acos"},
    {"Atan", "atan"},
    {"Sinh", "sinh"},
    {"Cosh", "cosh"},
    {"Erf", "erf"},
    {"Equal", "equal"},
    {"NotEqual", "not_equal"},
    {"Less", "less"},
    {"LessEqual", "less_equal"},
    {"Greater", "greater"},
    {"GreaterEqual", "greater_equal"},
    {"LogicalAnd", "logical_and"},
    {"LogicalOr", "logical_or"},
    {"LogicalNot", "logical_not"},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
    {"SelectV2", "where"},
    {"ZerosLike", "zeros_like"},
    {"OnesLike", "ones_like"},
    {"StopGradient", "stop_gradient"},
    {"IsNan", "is_nan"},
    {"IsInf", "is_inf"},
    {"IsFinite", "is_finite"},
};

static void read_same(tutti_graphdef_import *m)
{
    tutti_sym inputs[4];
    int count = tutti__graphdef_inputs(m->node);
    size_t i = 0;
    while (strcmp(same[i][0], m->node->op) != 0)
        i++;
    for (int k = 0; k < count && k < 4; k++)
        inputs[k] = IN(k);
    if (count < 1 || count > 4)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "has %d inputs", count);
    if (m->status == TUTTI_OK)
        made(m, tutti_apply_op(m->graph, same[i][1], count, inputs, 0, NULL));
}

/* The older Select: a vector of conditions chooses rows. */
static void read_select(tutti_graphdef_import *m)
{
    tutti_sym condition = IN(0), x = IN(1), y = IN(2);
    if (m->status != TUTTI_OK)
        return;
    if (tutti_sym_type(condition).rank == 1)
        for (int i = 1; i < tutti_sym_type(x).rank; i++)
            condition = tutti_expand_dims(condition, i);
    made(m, tutti_where(condition, x, y));
}

/* ---- ends ---- */

static void read_const(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, "value");
    if (attr && attr->tensor)
        made(m, tutti_constant(m->graph, attr->tensor));
    else
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "its elements are of a type that is not known");
}

static void read_placeholder(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *dtype = tutti__graphdef_attr(m->node, "dtype");
    const tutti_graphdef_attr *shape = tutti__graphdef_attr(m->node, "shape");
    if (m->depth > 0)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "an input is used in a body that does not take it");
    if (!dtype || !shape || !shape->has_shape || !shape->ranked ||
        tutti__graphdef_dtype_of(dtype->type) == TUTTI_NO_DTYPE) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "its element type or number of dimensions is not "
                             "known");
        return;
    }
    tutti_type type = shape->shape;
    type.dtype = tutti__graphdef_dtype_of(dtype->type);
    made(m, (tutti_placeholder)(m->graph, type));
}

/* All inputs as they are, lists of tensors too. */
static void read_identity(tutti_graphdef_import *m)
{
    int count = strcmp(m->node->op, "IdentityN") == 0 ? tutti__graphdef_inputs(m->node) : 1;
    for (int i = 0; m->status == TUTTI_OK && i < count; i++) {
        const tutti_graphdef_value *value = tutti__graphdef_input(m, i);
        if (value)
            tutti__graphdef_give(m, i, value);
    }
}

static void read_nothing(tutti_graphdef_import *m)
{
    (void)m;
}

/* Channels stand second in NCHW. */
static void read_bias(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), bias = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti__graphdef_channels_back(
                    m, tutti_add(tutti__graphdef_channels_last(m, x), bias)));
}

static const tutti_graphdef_entry others[] = {
    {"Select", read_select},
    {"Const", read_const},
    {"Placeholder", read_placeholder},
    {"Identity", read_identity},
    {"IdentityN", read_identity},
    {"NoOp", read_nothing},
    {"LoopCond", read_identity},
    {"Snapshot", read_identity},
    {"PreventGradient", read_identity},
    {"EnsureShape", read_identity},
    {"CheckNumerics", read_identity},
    {"PlaceholderWithDefault", read_identity},
    {"BiasAdd", read_bias},
    {NULL, NULL},
};

tutti_graphdef_rule *tutti__graphdef_rule_of(const char *op)
{
    const tutti_graphdef_entry *const tables[] = {others,
                                                  tutti__graphdef_layers,
                                                  tutti__graphdef_shapes,
                                                  tutti__graphdef_lists,
                                                  tutti__graphdef_control,
                                                  tutti__graphdef_indices,
                                                  tutti__graphdef_elements,
                                                  tutti__graphdef_windows};
    for (size_t i = 0; i < TUTTI_COUNT(tables); i++)
        for (const tutti_graphdef_entry *at = tables[i]; at->op; at++)
            if (strcmp(at->op, op) == 0)
                return at->rule;
    for (size_t i = 0; i < TUTTI_COUNT(same); i++)
        if (strcmp(same[i][0], op) == 0)
            return read_same;
    return NULL;
}
