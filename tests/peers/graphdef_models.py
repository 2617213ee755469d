#!/usr/bin/env python3
"""Frozen graphs of TensorFlow, run by Tutti and by TensorFlow.

    python3 tests/peers/graphdef_models.py TUTTI [--keep FOLDER] [NAME ...]

TUTTI is the command. Every model is frozen with its control flow as functions (While, If, calls)
and lowered (Enter, Exit, Switch, Merge), and run with two batches. With --keep the graphs stay in a
folder, and are taken from there the next time. Exit code 1 when one fails. Needs tensorflow."""
import os
import subprocess
import sys
import tempfile

import numpy as np

TOLERANCE = 2e-4
LOOSER = {'resize_cubic': 5e-3}  # TensorFlow takes its weights from a table


def keras_models():
    """Name, model, shapes of inputs without the batch (a dtype behind a shape; None in it is 7)."""
    from keras import Input, Model, Sequential, applications, layers

    def chain(shape, *parts, dtype='float32'):
        return Sequential([Input(shape, dtype=dtype), *parts])

    yield 'lstm', chain((9, 3), layers.LSTM(4)), [(9, 3)]
    yield 'lstm_long', chain((90, 3), layers.LSTM(4)), [(90, 3)]
    yield 'lstm_open', chain((None, 3), layers.LSTM(4, return_sequences=True)), [(None, 3)]
    yield 'lstm_back', chain((9, 3), layers.LSTM(4, go_backwards=True, return_sequences=True)), [(9, 3)]
    yield 'gru', chain((9, 3), layers.GRU(4, return_sequences=True)), [(9, 3)]
    yield 'gru_open', chain((None, 3), layers.GRU(4)), [(None, 3)]
    yield 'gru_before', chain((9, 3), layers.GRU(4, reset_after=False)), [(9, 3)]
    yield 'simple_rnn', chain((9, 3), layers.SimpleRNN(4)), [(9, 3)]
    yield 'simple_rnn_open', chain((None, 3), layers.SimpleRNN(4, return_sequences=True)), [(None, 3)]
    yield 'bidirectional', chain((9, 3), layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
                                 layers.Dense(2)), [(9, 3)]
    yield 'bidirectional_open', chain((None, 3), layers.Bidirectional(layers.GRU(4))), [(None, 3)]
    yield 'stacked', chain((9, 3), layers.LSTM(5, return_sequences=True), layers.GRU(4, return_sequences=True),
                           layers.SimpleRNN(3)), [(9, 3)]
    yield 'stacked_open', chain((None, 3), layers.LSTM(5, return_sequences=True),
                                layers.LSTM(4)), [(None, 3)]
    yield 'masked', chain((None,), layers.Embedding(6, 5, mask_zero=True), layers.LSTM(4), layers.Dense(2),
                          dtype='int32'), [((None,), 'int32')]
    yield 'masked_fixed', chain((9,), layers.Embedding(6, 5, mask_zero=True), layers.GRU(4, return_sequences=True),
                                dtype='int32'), [((9,), 'int32')]
    yield 'masking', chain((9, 3), layers.Masking(0.0), layers.Bidirectional(layers.LSTM(4))), [(9, 3)]
    a = Input((9, 3))
    sequence, h, c = layers.LSTM(4, return_sequences=True, return_state=True)(a)
    yield 'states', Model(a, [sequence, h, c]), [(9, 3)]
    a = Input((5, 3))
    _, *kept = layers.LSTM(4, return_state=True)(a)
    b = Input((None, 2))
    yield 'encoder_decoder', Model([a, b], layers.Dense(3)(
        layers.LSTM(4, return_sequences=True)(b, initial_state=kept))), [(5, 3), (None, 2)]
    yield 'time_distributed', chain((5, 8, 8, 2), layers.TimeDistributed(layers.Conv2D(3, 3)),
                                    layers.TimeDistributed(layers.Flatten()), layers.LSTM(4)), [(5, 8, 8, 2)]
    yield 'conv_lstm', chain((4, 8, 8, 2), layers.ConvLSTM2D(3, 3, padding='same')), [(4, 8, 8, 2)]
    yield 'text', chain((None,), layers.Embedding(50, 8), layers.Conv1D(6, 3, activation='relu'),
                        layers.GlobalMaxPooling1D(), layers.Dense(3, activation='softmax'), dtype='int32'), [((None,), 'int32')]
    yield 'text_mean', chain((12,), layers.Embedding(50, 8, mask_zero=True), layers.GlobalAveragePooling1D(),
                             layers.Dense(3, activation='softmax'), dtype='int32'), [((12,), 'int32')]
    for name, activation in [('gelu', 'gelu'), ('silu', 'silu'), ('elu', 'elu'), ('selu', 'selu'),
                             ('hard_sigmoid', 'hard_sigmoid'), ('hard_silu', 'hard_silu'), ('mish', 'mish'),
                             ('leaky_relu', 'leaky_relu'), ('softplus', 'softplus'), ('exponential', 'exponential'),
                             ('log_softmax', 'log_softmax'), ('relu6', 'relu6'), ('softsign', 'softsign'),
                             ('celu', 'celu'), ('tanh_shrink', 'tanh_shrink'), ('sparse_plus', 'sparse_plus')]:
        yield 'dense_' + name, chain((6,), layers.Dense(5, activation=activation)), [(6,)]
    a = Input((None, 8))
    x = layers.MultiHeadAttention(2, 4)(a, a)
    x = layers.LayerNormalization()(a + x)
    x = layers.LayerNormalization()(x + layers.Dense(8)(layers.Dense(16, activation='gelu')(x)))
    yield 'attention_open', Model(a, layers.GlobalAveragePooling1D()(x)), [(None, 8)]
    a = Input((6, 8))
    yield 'attention_causal', Model(a, layers.MultiHeadAttention(2, 4)(a, a, use_causal_mask=True)), [(6, 8)]
    a = Input((6, 8))
    yield 'attention_grouped', Model(a, layers.GroupQueryAttention(4, 4, 2)(a, a)), [(6, 8)]
    a, b = Input((5, 8)), Input((7, 8))
    yield 'attention_cross', Model([a, b], layers.Attention()([a, b])), [(5, 8), (7, 8)]
    yield 'norms', chain((8, 8, 6), layers.BatchNormalization(), layers.GroupNormalization(3),
                         layers.UnitNormalization(), layers.RMSNormalization()), [(8, 8, 6)]
    yield 'convolutions', chain((16, 16, 3), layers.Conv2D(8, 3, padding='same', dilation_rate=2),
                                layers.SeparableConv2D(6, 3, strides=2, padding='same'), layers.ReLU(6.0),
                                layers.DepthwiseConv2D(3, depth_multiplier=2), layers.Conv2DTranspose(4, 3, strides=2, padding='same'),
                                layers.UpSampling2D(2, interpolation='bilinear'), layers.UpSampling2D(2),
                                layers.ZeroPadding2D(1), layers.Cropping2D(2), layers.MaxPooling2D(2),
                                layers.AveragePooling2D(3, padding='same'), layers.Flatten(), layers.Dense(3)), [(16, 16, 3)]
    yield 'convolutions_1d', chain((20, 3), layers.Conv1D(4, 3, padding='causal', dilation_rate=2), layers.Conv1DTranspose(3, 3),
                                   layers.SeparableConv1D(4, 3), layers.MaxPooling1D(2), layers.AveragePooling1D(2), layers.UpSampling1D(2)), [(20, 3)]
    yield 'convolutions_3d', chain((8, 8, 8, 2), layers.Conv3D(4, 3), layers.MaxPooling3D(2), layers.Conv3DTranspose(2, 3),
                                   layers.AveragePooling3D(2), layers.GlobalAveragePooling3D()), [(8, 8, 8, 2)]
    yield 'reshapes', chain((4, 6), layers.Permute((2, 1)), layers.Reshape((3, 8)), layers.RepeatVector(2) if False else layers.Flatten(),
                            layers.RepeatVector(3), layers.PReLU(), layers.ThresholdedReLU(0.1) if hasattr(layers, 'ThresholdedReLU') else layers.ReLU()), [(4, 6)]
    a, b = Input((4,)), Input((4,))
    yield 'merges', Model([a, b], [layers.Concatenate()([a, b]), layers.Dot(1)([a, b]), layers.Maximum()([a, b]),
                                   layers.Average()([a, b]), layers.Subtract()([a, b]), layers.Multiply()([a, b])]), [(4,), (4,)]
    yield 'one_hot', chain((), layers.CategoryEncoding(7, output_mode='one_hot'), layers.Dense(2), dtype='int32'), [((), 'int32')]
    small = dict(weights=None, classes=5)
    yield 'mobilenet_v2', applications.MobileNetV2((32, 32, 3), alpha=0.35, **small), [(32, 32, 3)]
    yield 'mobilenet_v3', applications.MobileNetV3Small((32, 32, 3), **small), [(32, 32, 3)]
    yield 'efficientnet_b0', applications.EfficientNetB0(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'efficientnet_v2', applications.EfficientNetV2B0(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'resnet50', applications.ResNet50(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'densenet121', applications.DenseNet121(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'xception', applications.Xception(input_shape=(71, 71, 3), **small), [(71, 71, 3)]
    yield 'convnext', applications.ConvNeXtTiny(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'vgg', applications.VGG16(input_shape=(32, 32, 3), **small), [(32, 32, 3)]
    yield 'inception', applications.InceptionV3(input_shape=(75, 75, 3), **small), [(75, 75, 3)]
    yield 'nasnet', applications.NASNetMobile(input_shape=(32, 32, 3), **small), [(32, 32, 3)]


def functions():
    """Name, function, specs of arguments: (shape with the batch as None, dtype)."""
    import tensorflow as tf
    w = tf.constant(np.random.default_rng(1).normal(size=(4, 4)).astype('f4') / 2)
    image = np.random.default_rng(2).normal(size=(3, 3, 4, 5)).astype('f4')

    def nested(x):
        def outer(i, s):
            _, s = tf.while_loop(lambda j, _: j < i + 1, lambda j, t: (j + 1, tf.tanh(t @ w) + tf.cast(i, tf.float32)),
                                 (0, s))
            return i + 1, s
        return tf.while_loop(lambda i, s: tf.reduce_sum(s) < 40.0, outer, (0, x))[1]

    def gather(x):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=(None, 4))
        for i in tf.range(5):
            array = array.write(i, x * tf.cast(i, tf.float32))
        return array.stack(), array.read(3)

    def branches(x):
        def yes():
            return tf.cond(x[0, 0] > 0, lambda: x + 1, lambda: x * 3), x[:, 0]
        return tf.cond(tf.reduce_sum(x) > 0, yes, lambda: (x - 2, x[:, 1] * 2))

    def loop_branch(x):
        def step(i, s):
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s @ w, lambda: s + tf.cast(i, tf.float32))
        return tf.while_loop(lambda i, _: i < 6, step, (0, x))[1]

    def branch_loop(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.while_loop(lambda i, _: i < tf.shape(x)[0], lambda i, s: (i + 1, s * 0.5 + 1), (0, x))[1],
                       lambda: -x)

    @tf.function
    def called(x, y):
        return tf.nn.relu(x @ w) + y

    f4 = ((None, 4), 'float32')
    yield 'while_sum', lambda x: tf.while_loop(lambda s: tf.reduce_sum(s) < 100.0, lambda s: [s * 1.5 + 0.3], [x])[0], [f4]
    yield 'while_static', lambda x: tf.while_loop(lambda i, _: i < 5, lambda i, s: (i + 1, tf.tanh(s @ w)), (0, x))[1], [f4]
    yield 'while_nested', nested, [f4]
    yield 'array_write', gather, [f4]
    yield 'cond_nested', branches, [f4]
    yield 'cond_constant', lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.ones_like(x), lambda: tf.zeros((1, 1)) + x), [f4]
    yield 'loop_branch', loop_branch, [f4]
    yield 'branch_loop', branch_loop, [f4]
    yield 'map_fn', lambda x: tf.map_fn(lambda r: tf.reduce_sum(r) * r, x), [f4]
    yield 'scan', lambda x: tf.scan(lambda a, r: a * 0.5 + r, x), [f4]
    yield 'scan_back', lambda x: tf.scan(lambda a, r: a * 0.5 + r, x, reverse=True, initializer=tf.zeros(4)), [f4]
    yield 'foldl', lambda x: tf.foldl(lambda a, r: a * 0.5 + r, x), [f4]
    yield 'calls', lambda x: called(called(x, x), x * 2), [f4]
    # single operators
    yield 'slices', lambda x: (x[:, 1:3], x[..., -1], x[::-1], x[:, tf.newaxis, 1], x[0], x[-1, ::2], x[tf.newaxis, ..., 2:]), [f4]
    yield 'slice_open', lambda x: (x[:tf.shape(x)[0] - 1], tf.slice(x, [0, 1], [-1, 2]), x[1:, :tf.shape(x)[1] - 2]), [f4]
    yield 'packs', lambda x: (tf.stack([x, x + 1], 1), tf.unstack(x, axis=1)[2], tf.split(x, [1, 3], 1)[1], tf.split(x, 2, 1)[0]), [f4]
    yield 'top_k', lambda x: (*tf.math.top_k(x, 3), tf.argmax(x, 1), tf.argmin(x, -1, tf.int32)), [f4]
    yield 'sorts', lambda x: (tf.sort(x, 1), tf.argsort(x, 1, 'DESCENDING')), [f4]
    yield 'gathers', lambda x: (tf.gather(x, [0, 2], axis=1), tf.gather_nd(x, [[0, 1], [0, 3]]), tf.gather(x, tf.argmax(x, 1), axis=1, batch_dims=1)), [f4]
    yield 'one_hots', lambda x: (tf.one_hot(tf.argmax(x, 1), 4), tf.one_hot(tf.argmax(x, 1), 4, 2.0, -1.0, axis=0)), [f4]
    yield 'cumulative', lambda x: (tf.cumsum(x, 1, exclusive=True), tf.cumsum(x, 0, reverse=True), tf.math.cumprod(x, 1), tf.math.cumulative_logsumexp(x, 1)), [f4]
    yield 'reductions', lambda x: (tf.reduce_mean(x, 1, keepdims=True), tf.reduce_logsumexp(x, 1), tf.math.reduce_std(x, 1), tf.reduce_any(x > 0, 1),
                                   tf.reduce_all(x > -3, 0), tf.reduce_prod(x, 1), tf.norm(x, axis=1), tf.math.reduce_euclidean_norm(x, 1)), [f4]
    yield 'fills', lambda x: (tf.fill(tf.shape(x), 2.0), tf.zeros((tf.shape(x)[0], 3)), tf.range(tf.shape(x)[0]), tf.linspace(0.0, 1.0, 5), tf.eye(4) + x[:1, 0]), [f4]
    yield 'tiles', lambda x: (tf.tile(x, [2, 3]), tf.broadcast_to(x[:1], tf.shape(x)), tf.repeat(x, 2, axis=1), tf.tile(x[:1], [tf.shape(x)[0], 1])), [f4]
    yield 'pads', lambda x: (tf.pad(x, [[0, 0], [1, 2]]), tf.pad(x, [[0, 0], [1, 2]], constant_values=3.0), tf.pad(x, [[0, 0], [1, 1]], 'REFLECT'), tf.pad(x, [[0, 0], [1, 1]], 'SYMMETRIC')), [f4]
    yield 'elements', lambda x: (tf.math.atan2(x, x + 3), tf.math.divide_no_nan(x, tf.nn.relu(x)), tf.math.xlogy(x, tf.abs(x) + 1), tf.asinh(x), tf.acosh(tf.abs(x) + 1.1),
                                 tf.atanh(tf.tanh(x) * 0.5), tf.clip_by_value(x, -0.5, 0.5), tf.truncatediv(tf.cast(x * 5, tf.int32), 2),
                                 tf.math.floormod(x, 2.0), tf.math.softsign(x), tf.math.erfc(x), tf.math.squared_difference(x, 1.0), tf.math.multiply_no_nan(x, x), tf.math.logical_xor(x > 0, x < 1)), [f4]
    yield 'casts', lambda x: (tf.cast(x * 3, tf.int32), tf.cast(x, tf.float16), tf.cast(x > 0, tf.float32), tf.cast(x, tf.bfloat16) + 1, tf.cast(tf.cast(x, tf.float64), tf.int64)), [f4]
    yield 'wheres', lambda x: (tf.where(x > 0, x, -x), tf.where(x[:, :1] > 0, x, 0.0)), [f4]
    yield 'nonzero', lambda x: (tf.where(x > 0), tf.boolean_mask(x, x[:, 0] > -10)), [f4]
    yield 'scatters', lambda x: (tf.scatter_nd([[1], [3]], x[:1, :2][0][:, None], (5, 1)), tf.tensor_scatter_nd_update(x, [[0, 1]], [9.0]),
                                 tf.tensor_scatter_nd_add(x, [[0, 1]], [9.0]), tf.math.unsorted_segment_sum(x, tf.zeros(tf.shape(x)[0], tf.int32), 2)), [f4]
    yield 'reverses', lambda x: (tf.reverse(x, [1]), tf.roll(x, 1, 1), tf.reverse_sequence(tf.tile(x[:1], (2, 1)), [2, 3], seq_axis=1), tf.transpose(x)), [f4]
    yield 'einsums', lambda x: (tf.einsum('bi,ij->bj', x, w), tf.einsum('bi,bi->b', x, x), tf.einsum('...i,ij->...j', x, w), tf.linalg.matmul(x, w, transpose_b=True), tf.tensordot(x, w, 1)), [f4]
    yield 'triangles', lambda x: (tf.linalg.band_part(x @ w, -1, 0), tf.linalg.diag(x), tf.linalg.diag_part(w) + x, tf.linalg.trace(w) + x), [f4]
    yield 'losses', lambda x: (tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(x), x), tf.nn.sparse_softmax_cross_entropy_with_logits(tf.zeros(tf.shape(x)[0], tf.int32), x), tf.nn.l2_loss(x)), [f4]
    yield 'fake_quant', lambda x: (tf.quantization.fake_quant_with_min_max_args(x, -1.5, 1.3), tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 2.0, 4, True),
                                   tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1., -2., -1., 0.], [1., 2., 3., 4.])), [f4]
    image_spec = ((None, 8, 10, 4), 'float32')
    yield 'resizes', lambda x: (tf.image.resize(x, (5, 7)), tf.image.resize(x, (16, 20), 'nearest'), tf.compat.v1.image.resize_bilinear(x, (4, 4), align_corners=True),
                                tf.compat.v1.image.resize_bilinear(x, tf.shape(x)[1:3] * 2)), [image_spec]
    yield 'resize_cubic', lambda x: tf.image.resize(x, (16, 12), 'bicubic'), [image_spec]
    yield 'blocks', lambda x: (tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]), tf.nn.depth_to_space(x, 2), tf.nn.space_to_depth(x, 2),
                               tf.batch_to_space(tf.tile(x[:1], (4, 1, 1, 1)), [2, 2], [[0, 1], [1, 0]])), [image_spec]
    yield 'dilated', lambda x: (tf.nn.atrous_conv2d(x, image, 2, 'SAME'), tf.nn.conv2d(x, image, 1, [[0, 0], [1, 2], [2, 1], [0, 0]])), [image_spec]
    yield 'grouped', lambda x: (tf.nn.conv2d(x, image[:, :, :2, :4], 1, 'SAME'), tf.nn.conv2d_transpose(x, image.transpose(0, 1, 3, 2), tf.stack([tf.shape(x)[0], 16, 20, 5]), 2, 'SAME')), [image_spec]
    yield 'local_response', lambda x: (tf.nn.local_response_normalization(x, 2), tf.nn.crelu(x), tf.nn.l2_normalize(x, -1)), [image_spec]


def refused():
    """Name, function, specs, what the message must name."""
    import tensorflow as tf
    f4 = ((None, 4), 'float32')
    yield 'two_at_once', lambda x: tf.math.lgamma(x) + tf.math.digamma(x), [f4], ["Lgamma ('Lgamma')", "Digamma ('Digamma')"]
    yield 'switch_case', lambda x: tf.switch_case(tf.shape(x)[0] % 4, [lambda: x, lambda: x * 2, lambda: x - 1]), [f4], ['_SwitchN']
    yield 'order', lambda x: tf.transpose(x, tf.argsort(tf.shape(x))), [f4], ["Transpose 'transpose'", 'must be a constant']


def freeze(function, specs, folder, lower):
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    tensors = [tf.TensorSpec(shape, dtype, name=f'in{i}') for i, (shape, dtype) in enumerate(specs)]
    concrete = tf.function(function).get_concrete_function(*tensors)
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
    generator = np.random.default_rng(3)
    for batch in 3, 1:
        arrays = {}
        for i, (shape, dtype) in enumerate(specs):
            size = [batch if k == 0 else 7 if d is None else d for k, d in enumerate(shape)]
            arrays[f'in{i}'] = (generator.integers(0, 5, size) if dtype == 'int32' else generator.normal(size=size)).astype(dtype)
        # masks end a row: trailing zeros
        results = tf.nest.flatten(concrete(*map(tf.constant, arrays.values())))
        np.savez(f'{folder}/in{batch}.npz', **arrays)
        np.savez(f'{folder}/out{batch}.npz', **{f'o{i}': to_array(r) for i, r in enumerate(results)})
    graph = frozen.graph.as_graph_def()
    with open(f'{folder}/names', 'w', encoding='utf8') as file:
        file.write('\n'.join(t.name for t in frozen.outputs))
    with open(f'{folder}/frozen.pb', 'wb') as file:
        file.write(graph.SerializeToString())


def to_array(tensor):
    array = tensor.numpy()
    return array.astype(np.float32) if array.dtype.name == 'bfloat16' else array


def run(tutti, folder, batch):
    """The largest difference, or a text that says what went wrong."""
    out = f'{folder}/tutti.npz'
    done = subprocess.run([tutti, 'predict', f'{folder}/frozen.pb', '--input', f'{folder}/in{batch}.npz', '--output', out],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip() or f'exit code {done.returncode}').replace(folder + '/', '')[:1500]
    results, expected, worst = np.load(out), np.load(f'{folder}/out{batch}.npz'), 0.0
    with open(f'{folder}/names', encoding='utf8') as file:
        names = file.read().split('\n')
    for key, name in zip(expected.keys(), names):
        wanted = expected[key]
        name = name.removesuffix(':0')
        if name not in results:
            return f'there is no output {name}, but {list(results.keys())}'
        result = results[name]
        if result.shape != wanted.shape:
            return f'{name} is {result.dtype}{result.shape}, expected {wanted.dtype}{wanted.shape}'
        result, wanted = result.astype(np.float64), wanted.astype(np.float64)
        error = np.abs(result - wanted) / np.maximum(1, np.abs(wanted))
        error = float(np.where((result == wanted) | (np.isnan(result) & np.isnan(wanted)), 0, error).max(initial=0))
        worst = max(worst, error if error == error else float('inf'))
    return worst if worst <= LOOSER.get(os.path.basename(folder).split('.')[0], TOLERANCE) else f'differs by {worst:g}'


def cases():
    """Name, and what makes (function, specs)."""
    for name, function, specs in functions():
        yield name, function, specs
    for name, model, shapes in keras_models():
        specs = [(shape if shape == () or isinstance(shape[0], (int, type(None))) else shape[0],
                  'float32' if shape == () or isinstance(shape[0], (int, type(None))) else shape[1]) for shape in shapes]
        specs = [((None, *shape), dtype) for shape, dtype in specs]
        yield name, (lambda *x, model=model: model(list(x) if len(x) > 1 else x[0], training=False)), specs


def check_refusals(tutti, folder):
    """The number of mistakes."""
    wrong = 0
    for name, function, specs, words in refused():
        place = f'{folder}/refused_{name}'
        os.makedirs(place, exist_ok=True)
        freeze(function, specs, place, True)
        message = run(tutti, place, 3)
        lacks = [word for word in words if word not in str(message)]
        print(f'refused {name}: {"lacks " + str(lacks) + ": " if lacks else ""}{message}')
        os.remove(f'{place}/frozen.pb')
        wrong += bool(lacks)
    return wrong


def make(folder, names):
    import tensorflow as tf
    for name, function, specs in cases():
        tf.random.set_seed(1)
        for form in 'functions', 'lowered':
            place = f'{folder}/{name}.{form}'
            if (names and name not in names) or os.path.exists(f'{place}/frozen.pb'):
                continue
            os.makedirs(place, exist_ok=True)
            try:
                freeze(function, specs, place, form == 'lowered')
            except Exception as error:  # a model that this TensorFlow does not have
                print(f'{name}.{form}: not made: {str(error)[:300]}')


def main():
    arguments, folder = sys.argv[1:], None
    if '--keep' in arguments:
        at = arguments.index('--keep')
        folder = arguments[at + 1]
        del arguments[at:at + 2]
    tutti, names = arguments[0], arguments[1:]
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
    with tempfile.TemporaryDirectory() as scratch:
        fresh = not folder or not os.path.isdir(folder) or not os.listdir(folder)
        folder = folder or scratch
        failed = done = 0
        if fresh:
            make(folder, names)
        if not names:
            failed = check_refusals(tutti, scratch)
        for place in sorted(os.listdir(folder)):
            if not os.path.exists(f'{folder}/{place}/frozen.pb') or (names and place.split('.')[0] not in names):
                continue
            results = [run(tutti, f'{folder}/{place}', batch) for batch in (3, 1)]
            bad = [r for r in results if isinstance(r, str)]
            done, failed = done + 1, failed + bool(bad)
            print(f'{place}: {bad[0]}' if bad else f'{place}: largest difference {max(results):.2g}', flush=True)
    print(f'{done} graphs, {failed} failures')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
