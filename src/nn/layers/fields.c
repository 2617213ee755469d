/* fields.c: the settings that several kinds have alike. */
#include "nn/layers/common.h"

const tutti_field tutti__pool3d_fields[] = {
    TUTTI_INTS_FIELD(tutti_pool3d_settings, pool_size),
    TUTTI_INTS_FIELD(tutti_pool3d_settings, strides),
    TUTTI_TEXT_FIELD(tutti_pool3d_settings, padding),
    {0},
};

const tutti_field tutti__pool2d_fields[] = {
    TUTTI_INTS_FIELD(tutti_pool2d_settings, pool_size),
    TUTTI_INTS_FIELD(tutti_pool2d_settings, strides),
    TUTTI_TEXT_FIELD(tutti_pool2d_settings, padding),
    {0},
};

const tutti_field tutti__pool1d_fields[] = {
    TUTTI_INT_FIELD(tutti_pool1d_settings, pool_size),
    TUTTI_INT_FIELD(tutti_pool1d_settings, strides),
    TUTTI_TEXT_FIELD(tutti_pool1d_settings, padding),
    {0},
};

const tutti_field tutti__global_pool_fields[] = {
    TUTTI_FLAG_FIELD(tutti_global_pool_settings, keepdims),
    {0},
};

const tutti_field tutti__dims_fields[] = {
    TUTTI_INT_FIELD(tutti_dims_settings, rank),
    TUTTI_INTS_FIELD(tutti_dims_settings, dims),
    {0},
};

const tutti_field tutti__border1d_fields[] = {
    TUTTI_INT_FIELD(tutti_border1d_settings, amount),
    TUTTI_INTS_FIELD(tutti_border1d_settings, pads),
    {0},
};

const tutti_field tutti__border2d_fields[] = {
    TUTTI_INTS_FIELD(tutti_border2d_settings, amount),
    TUTTI_INTS_FIELD(tutti_border2d_settings, pads),
    {0},
};

const tutti_field tutti__dropout_fields[] = {
    TUTTI_NUMBER_FIELD(tutti_dropout_settings, rate),
    TUTTI_INT_FIELD(tutti_dropout_settings, seed),
    {0},
};

const tutti_field tutti__norm_fields[] = {
    TUTTI_NUMBER_FIELD(tutti_norm_settings, epsilon),
    TUTTI_INT_FIELD(tutti_norm_settings, groups),
    TUTTI_FLAG_FIELD(tutti_norm_settings, no_center),
    TUTTI_FLAG_FIELD(tutti_norm_settings, no_scale),
    TUTTI_TEXT_FIELD(tutti_norm_settings, beta_initializer),
    TUTTI_TEXT_FIELD(tutti_norm_settings, gamma_initializer),
    TUTTI_TEXT_FIELD(tutti_norm_settings, beta_regularizer),
    TUTTI_TEXT_FIELD(tutti_norm_settings, gamma_regularizer),
    TUTTI_TEXT_FIELD(tutti_norm_settings, beta_constraint),
    TUTTI_TEXT_FIELD(tutti_norm_settings, gamma_constraint),
    {0},
};

const tutti_field tutti__rnn_fields[] = {
    TUTTI_INT_FIELD(tutti_rnn_settings, units),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, return_sequences),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, return_state),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, go_backwards),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, bidirectional),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, merge_mode),
    TUTTI_NUMBER_FIELD(tutti_rnn_settings, dropout),
    TUTTI_INT_FIELD(tutti_rnn_settings, seed),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, no_bias),
    TUTTI_FLAG_FIELD(tutti_rnn_settings, no_unit_forget_bias),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, recurrent_initializer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, kernel_regularizer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, recurrent_regularizer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, kernel_constraint),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, recurrent_constraint),
    TUTTI_TEXT_FIELD(tutti_rnn_settings, bias_constraint),
    {0},
};
