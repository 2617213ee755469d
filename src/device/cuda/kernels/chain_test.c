/* chain_test.c: the texts of element-wise kernels: what they refuse, and that they compile. */
#include "device/cuda/kernels/chain.h"

#include <stdlib.h>

#include "base/test.h"
#include "device/cuda/compile/compile.h"
#include "device/cuda/driver/load.h"

static const tutti_cuda_chain_step steps[] = {{"add", 0, 1, 0, 0},
                                              {"gelu", 3, 0, 0, 0},
                                              {"constant", 0, 0, 0, 0.5},
                                              {"mul", 4, 5, 0, 0},
                                              {"where", 2, 6, 0, 0}};

static tutti_cuda_chain make_chain(void)
{
    tutti_cuda_chain chain = {.width = 768, .input_count = 3, .step_count = 5, .output_count = 2};
    chain.inputs[0].type = chain.outputs[0].type = TUTTI_CUDA_BF16;
    chain.inputs[1].type = TUTTI_CUDA_F16;
    chain.inputs[1].spread = TUTTI_CUDA_ROW;
    chain.inputs[2].spread = TUTTI_CUDA_COLUMN;
    chain.outputs[0].value = 6;
    chain.outputs[1].value = 7;
    chain.steps = steps;
    return chain;
}

TUTTI_TEST(cuda_chain_refuses_what_it_does_not_know)
{
    tutti_cuda_chain chain = make_chain();
    tutti_text text = {0};
    chain.steps = (const tutti_cuda_chain_step[]){{"fft", 0, 0, 0, 0}};
    chain.step_count = 1;
    CHECK_STATUS(tutti__cuda_chain_text(&chain, &text), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "'fft'");
    chain.steps = (const tutti_cuda_chain_step[]){{"add", 0, 3, 0, 0}};
    CHECK_STATUS(tutti__cuda_chain_text(&chain, &text), TUTTI_INVALID);
    tutti__text_free(&text);
}

TUTTI_TEST(cuda_chain_compiles)
{
    static const int64_t widths[] = {768, 7};
    const tutti_nvrtc *nvrtc;
    if (tutti__cuda_nvrtc(&nvrtc) != TUTTI_OK)
        SKIP("kernels are not compiled here: %s", tutti_error_message());
    for (int i = 0; i < 2; i++) {
        tutti_cuda_chain chain = make_chain();
        tutti_text text = {0};
        void *cubin;
        size_t size;
        chain.width = widths[i];
        CHECK_OK(tutti__cuda_chain_text(&chain, &text));
        const tutti_cuda_job job = {"chain", text.data, "", i == 0 ? 80 : 90, NULL};
        CHECK_OK(tutti__cuda_compile(&job, &cubin, &size, NULL));
        free(cubin);
        tutti__text_free(&text);
    }
}
