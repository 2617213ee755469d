#!/usr/bin/env python3
"""Every layer, loss, metric, optimizer, regularizer and constraint that Keras has too, beside Keras.

    python3 tests/peers/training.py TUTTI TRAINING [TEXT]

TUTTI is the command, TRAINING tests/peers/training.c, compiled. Models are written by hand as JSON and
safetensors; layers are compared by `tutti predict`, the rest by a few steps of training from the same
weights on the same batches. TEXT keeps the cases whose name contains it. Needs numpy, safetensors and
tensorflow."""
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '0')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import safetensors.numpy
from tensorflow import keras

L, DRAW = keras.layers, np.random.default_rng(7)
TYPES = {'float32': 'f32', 'int32': 'i32', 'int64': 'i64'}


def f(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


def ids(high, *shape):
    return DRAW.integers(1, high, shape).astype(np.int32)


def write_model(folder, layers, inputs, weights, compiled=None):
    """Layers in a chain; the first takes all inputs."""
    nodes, before = [], [name for name, _ in inputs]
    for layer in layers:
        nodes.append({'name': layer['name'], 'layer': layer['name'], 'inputs': before})
        before = [layer['name']]
    model = {'tutti': '0.1.0', 'kind': 'functional', 'name': 'model', 'precision': 'f32',
             'layers': layers, 'nodes': nodes, 'outputs': [{'name': 'y', 'from': before[0]}],
             'inputs': [{'name': name, 'dtype': TYPES[str(x.dtype)], 'shape': list(x.shape[1:])}
                        for name, x in inputs]}
    if compiled:
        model['compile'] = compiled
    with open(folder + '/m.json', 'w', encoding='utf-8') as file:
        json.dump(model, file)
    safetensors.numpy.save_file({k: np.ascontiguousarray(v) for k, v in weights.items()},
                                folder + '/m.safetensors')


def ours(tutti, layers, inputs, weights):
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder, layers, inputs, weights)
        np.savez(folder + '/x.npz', **dict(inputs))
        done = subprocess.run([tutti, 'predict', folder + '/m', '--input', folder + '/x.npz',
                               '--output', folder + '/y.npz'], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return np.load(folder + '/y.npz')['y']


def random_weights(layer):
    """Gives a built Keras layer random weights."""
    values = []
    for variable in layer.weights:
        value = f(*variable.shape) * 0.5
        values.append(np.abs(value) + 0.1 if 'variance' in variable.path else value)
    layer.set_weights(values)


def names_of(layer, name):
    """Our names of a Keras layer's weights: the path below the layer."""
    found = {}
    for variable in layer.weights:
        path = variable.path.split('/')
        path = [p for p in path[path.index(layer.name) + 1:] if not p.endswith('_cell')]
        path = ['forward' if p.startswith('forward_') else 'backward' if p.startswith('backward_')
                else p for p in path]
        found['/'.join([name] + path)] = variable.numpy()
    return found


def apart(a, b):
    """The largest distance, relative to the largest number."""
    if a.shape != b.shape:
        return float('inf')
    return float(np.abs(a - b).max() / max(1, np.abs(b).max())) if a.size else 0.0


# ---- layers: name, Keras' layer, our settings, inputs ----

IMAGE, SEQUENCE, VOLUME = (2, 7, 6, 4), (3, 6, 5), (2, 5, 6, 4, 3)


def layer_cases():
    case = []

    def add(name, theirs, kind, *inputs, **settings):
        case.append((name, theirs, {'kind': kind, 'name': 'l', **settings}, inputs))

    for activation in ('relu', 'relu6', 'leaky_relu', 'elu', 'selu', 'gelu', 'silu', 'sigmoid',
                       'hard_sigmoid', 'hard_swish', 'mish', 'tanh', 'softplus', 'softsign',
                       'softmax', 'linear', 'exp'):
        theirs = {'exp': 'exponential', 'hard_swish': 'hard_silu', 'gelu': keras.activations.gelu}
        add('activation ' + activation, L.Activation(theirs.get(activation, activation)),
            'activation', f(4, 9) * 3, activation=activation)
        if activation != 'exp':
            add('dense ' + activation, L.Dense(7, theirs.get(activation, activation)), 'dense',
                f(4, 5), units=7, activation=activation)
    add('dense over time', L.Dense(3, use_bias=False), 'dense', f(*SEQUENCE), units=3, no_bias=True)
    for padding in ('valid', 'same'):
        for strides, dilations in ((1, 1), (2, 1), (3, 1), (1, 2)):
            both = {'padding': padding, 'strides': [strides] * 2, 'dilations': [dilations] * 2}
            text = f'{padding} {strides} {dilations}'
            add('conv2d ' + text, L.Conv2D(8, (3, 2), strides, padding, dilation_rate=dilations),
                'conv2d', f(*IMAGE), filters=8, kernel_size=[3, 2], **both)
            one = {'padding': padding, 'strides': strides, 'dilations': dilations}
            add('conv1d ' + text, L.Conv1D(8, 3, strides, padding, dilation_rate=dilations),
                'conv1d', f(*SEQUENCE), filters=8, kernel_size=3, **one)
            add('conv3d ' + text, L.Conv3D(4, 2, strides, padding, dilation_rate=dilations),
                'conv3d', f(*VOLUME), filters=4, kernel_size=[2] * 3, padding=padding,
                strides=[strides] * 3, dilations=[dilations] * 3)
            add('separable_conv2d ' + text,
                L.SeparableConv2D(5, 3, strides, padding, dilation_rate=dilations,
                                  depth_multiplier=2), 'separable_conv2d', f(*IMAGE), filters=5,
                kernel_size=[3, 3], depth_multiplier=2, **both)
            add('separable_conv1d ' + text,
                L.SeparableConv1D(5, 3, strides, padding, dilation_rate=dilations),
                'separable_conv1d', f(*SEQUENCE), filters=5, kernel_size=3, **one)
            if dilations == 1 or strides == 1:
                add('depthwise_conv2d ' + text,
                    L.DepthwiseConv2D(3, strides, padding, 2, dilation_rate=dilations),
                    'depthwise_conv2d', f(*IMAGE), kernel_size=[3, 3], depth_multiplier=2, **both)
            if dilations == 1:  # TensorFlow has no others on a CPU
                add('conv2d_transpose ' + text, L.Conv2DTranspose(5, 3, strides, padding),
                    'conv2d_transpose', f(*IMAGE), filters=5, kernel_size=[3, 3], **both)
                add('conv1d_transpose ' + text, L.Conv1DTranspose(5, 3, strides, padding),
                    'conv1d_transpose', f(*SEQUENCE), filters=5, kernel_size=3, **one)
        for name, theirs in (('max_pool', L.MaxPooling2D), ('average_pool', L.AveragePooling2D)):
            add(f'{name}2d {padding}', theirs((3, 2), (2, 1), padding), name + '2d', f(*IMAGE),
                pool_size=[3, 2], strides=[2, 1], padding=padding)
        for name, theirs in (('max_pool', L.MaxPooling1D), ('average_pool', L.AveragePooling1D)):
            add(f'{name}1d {padding}', theirs(3, 2, padding), name + '1d', f(*SEQUENCE),
                pool_size=3, strides=2, padding=padding)
        for name, theirs in (('max_pool', L.MaxPooling3D), ('average_pool', L.AveragePooling3D)):
            add(f'{name}3d {padding}', theirs(2, 2, padding), name + '3d', f(*VOLUME),
                pool_size=[2] * 3, strides=[2] * 3, padding=padding)
        add('conv3d_transpose ' + padding, L.Conv3DTranspose(4, 3, 2, padding), 'conv3d_transpose',
            f(*VOLUME), filters=4, kernel_size=[3] * 3, strides=[2] * 3, padding=padding)
    add('conv2d groups', L.Conv2D(8, 3, groups=2), 'conv2d', f(*IMAGE), filters=8,
        kernel_size=[3, 3], groups=2)
    add('conv1d causal', L.Conv1D(8, 3, padding='causal', dilation_rate=2), 'conv1d', f(*SEQUENCE),
        filters=8, kernel_size=3, padding='causal', dilations=2)
    add('conv2d_transpose output_padding',
        L.Conv2DTranspose(5, 3, 2, 'same', output_padding=1), 'conv2d_transpose', f(*IMAGE),
        filters=5, kernel_size=[3, 3], strides=[2, 2], padding='same', output_padding=[1, 1])
    for d, shape in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME)):
        for name, word in (('max', 'Max'), ('average', 'Average')):
            for keep in (False, True):
                add(f'global_{name}_pool{d}d {keep}',
                    getattr(L, f'Global{word}Pooling{d}D')(keepdims=keep), f'global_{name}_pool{d}d',
                    f(*shape), keepdims=keep)
    add('flatten', L.Flatten(), 'flatten', f(*IMAGE))
    add('reshape', L.Reshape((4, -1, 3)), 'reshape', f(2, 6, 4), rank=3, dims=[4, -1, 3])
    add('permute', L.Permute((3, 1, 2)), 'permute', f(*IMAGE), rank=3, dims=[3, 1, 2])
    add('repeat_vector', L.RepeatVector(4), 'repeat_vector', f(2, 5), n=4)
    add('zero_padding2d', L.ZeroPadding2D(((1, 2), (0, 3))), 'zero_padding2d', f(*IMAGE),
        pads=[1, 2, 0, 3])
    add('zero_padding1d', L.ZeroPadding1D((2, 1)), 'zero_padding1d', f(*SEQUENCE), pads=[2, 1])
    add('cropping2d', L.Cropping2D(((1, 2), (0, 3))), 'cropping2d', f(*IMAGE), pads=[1, 2, 0, 3])
    add('cropping1d', L.Cropping1D((2, 1)), 'cropping1d', f(*SEQUENCE), pads=[2, 1])
    for interpolation in ('nearest', 'bilinear', 'bicubic'):
        add('up_sampling2d ' + interpolation, L.UpSampling2D((2, 3), interpolation=interpolation),
            'up_sampling2d', f(*IMAGE), size=[2, 3], interpolation=interpolation)
    add('up_sampling1d', L.UpSampling1D(3), 'up_sampling1d', f(*SEQUENCE), size=3)
    add('up_sampling3d', L.UpSampling3D((1, 2, 3)), 'up_sampling3d', f(*VOLUME), size=[1, 2, 3])
    add('relu layer', L.ReLU(1.5, 0.1, 0.2), 'relu', f(4, 9) * 2, max_value=1.5, negative_slope=0.1,
        threshold=0.2)
    add('leaky_relu layer', L.LeakyReLU(), 'leaky_relu', f(4, 9))
    add('elu layer', L.ELU(0.5), 'elu', f(4, 9), alpha=0.5)
    add('softmax layer', L.Softmax(1), 'softmax', f(2, 3, 4), axis=1)
    add('prelu', L.PReLU(), 'prelu', f(3, 5))
    for name, theirs in (('dropout', L.Dropout(0.5)), ('spatial_dropout1d', L.SpatialDropout1D(0.5)),
                         ('gaussian_noise', L.GaussianNoise(0.5))):
        add(name, theirs, name, f(*SEQUENCE),
            **({'stddev': 0.5} if 'noise' in name else {'rate': 0.5}))
    add('batch_norm', L.BatchNormalization(), 'batch_norm', f(*IMAGE))
    add('batch_norm bare', L.BatchNormalization(center=False, scale=False, epsilon=0.1),
        'batch_norm', f(5, 4), no_center=True, no_scale=True, epsilon=0.1)
    add('layer_norm', L.LayerNormalization(), 'layer_norm', f(*SEQUENCE))
    add('group_norm', L.GroupNormalization(2), 'group_norm', f(*IMAGE), groups=2)
    add('instance_norm', L.GroupNormalization(-1), 'instance_norm', f(*IMAGE))
    add('rms_norm', L.RMSNormalization(), 'rms_norm', f(*SEQUENCE))
    add('embedding', L.Embedding(11, 4), 'embedding', ids(11, 3, 5), input_dim=11, output_dim=4)
    for name, theirs in (('simple_rnn', L.SimpleRNN), ('gru', L.GRU), ('lstm', L.LSTM)):
        for sequences in (False, True):
            add(f'{name} {sequences}', theirs(7, return_sequences=sequences), name, f(*SEQUENCE),
                units=7, return_sequences=sequences)
            add(f'{name} backwards {sequences}',
                theirs(7, return_sequences=sequences, go_backwards=True), name, f(*SEQUENCE),
                units=7, return_sequences=sequences, go_backwards=True)
            for merge in ('concat', 'sum', 'mul', 'ave'):
                add(f'{name} both ways {merge} {sequences}',
                    L.Bidirectional(theirs(7, return_sequences=sequences), merge), name,
                    f(*SEQUENCE), units=7, bidirectional=True, return_sequences=sequences,
                    merge_mode=merge)
        add(name + ' no bias', theirs(7, use_bias=False), name, f(*SEQUENCE), units=7, no_bias=True)
    for name, theirs in (('add', L.Add), ('multiply', L.Multiply), ('average', L.Average),
                         ('maximum', L.Maximum), ('minimum', L.Minimum)):
        add(name, theirs(), name, f(3, 4), f(3, 4), f(3, 4))
    add('subtract', L.Subtract(), 'subtract', f(3, 4), f(3, 4))
    add('concatenate', L.Concatenate(1), 'concatenate', f(3, 4, 2), f(3, 1, 2), axis=1)
    add('dot', L.Dot(1, normalize=True), 'dot', f(3, 4), f(3, 4), axes=[1, 1], normalize=True)
    add('rescaling', L.Rescaling(0.5, -1), 'rescaling', f(3, 4), scale=0.5, offset=-1)
    add('normalization', L.Normalization(mean=[0.1, 0.2, 0.3], variance=[1, 2, 3]), 'normalization',
        f(5, 3), mean='0.1,0.2,0.3', variance='1,2,3')
    return case


def check_layer(tutti, theirs, settings, inputs):
    arrays = [(f'x{i}', x) for i, x in enumerate(inputs)]
    given = list(inputs) if len(inputs) > 1 else inputs[0]
    theirs(given)  # builds it
    random_weights(theirs)
    expected = np.asarray(theirs(given, training=False) if theirs.weights or 'rate' in settings or
                          'stddev' in settings else theirs(given))
    return apart(ours(tutti, [settings], arrays, names_of(theirs, 'l')), expected)


# ---- chains: masks ----

def chain_cases():
    """Masked steps at the end, in front, and anywhere."""
    behind, before = np.zeros((3, 6), np.int32), np.zeros((3, 6), np.int32)
    for row, length in enumerate((6, 4, 2)):
        behind[row, :length] = DRAW.integers(1, 9, length)
        before[row, 6 - length:] = DRAW.integers(1, 9, length)
    holes = np.array([[0, 3, 0, 0, 5, 1], [4, 0, 2, 2, 0, 0], [0, 0, 0, 0, 0, 0]], np.int32)
    for place, words in (('behind', behind), ('before', before), ('with holes', holes)):
        for name, theirs in (('simple_rnn', L.SimpleRNN), ('gru', L.GRU), ('lstm', L.LSTM)):
            for ways in (False, True):
                for sequences in (False, True):
                    inner = theirs(5, return_sequences=sequences)
                    yield (f'mask {place} {name} {"both ways " if ways else ""}{sequences}',
                           [L.Embedding(9, 4, mask_zero=True),
                            L.Bidirectional(inner) if ways else inner],
                           [{'kind': 'embedding', 'name': 'e', 'input_dim': 9, 'output_dim': 4,
                             'mask_zero': True},
                            {'kind': name, 'name': 'r', 'units': 5, 'bidirectional': ways,
                             'return_sequences': sequences}], words)
                yield (f'mask {place} {name} backwards {ways}',
                       [L.Embedding(9, 4, mask_zero=True),
                        theirs(5, return_sequences=ways, go_backwards=True)],
                       [{'kind': 'embedding', 'name': 'e', 'input_dim': 9, 'output_dim': 4,
                         'mask_zero': True},
                        {'kind': name, 'name': 'r', 'units': 5, 'go_backwards': True,
                         'return_sequences': ways}], words)
        yield (f'mask {place} global_average_pool1d',
               [L.Embedding(9, 4, mask_zero=True), L.GlobalAveragePooling1D()],
               [{'kind': 'embedding', 'name': 'e', 'input_dim': 9, 'output_dim': 4,
                 'mask_zero': True}, {'kind': 'global_average_pool1d', 'name': 'p'}], words[:2])


def check_chain(tutti, theirs, settings, x):
    model = keras.Sequential([keras.Input(x.shape[1:], dtype=x.dtype.name)] + theirs)
    weights = {}
    for layer, setting in zip(theirs, settings):
        random_weights(layer)
        weights.update(names_of(layer, setting['name']))
    expected = np.asarray(model(x, training=False))
    return apart(ours(tutti, settings, [('x', x)], weights), expected)


def check_attention(tutti, causal):
    query, value = f(2, 5, 6), f(2, 7, 6)
    theirs = L.MultiHeadAttention(3, 4)
    given = (query, query) if causal else (query, value)
    theirs(*given, use_causal_mask=causal)
    random_weights(theirs)
    expected = np.asarray(theirs(*given, use_causal_mask=causal))
    settings = {'kind': 'multi_head_attention', 'name': 'l', 'num_heads': 3, 'key_dim': 4,
                'use_causal_mask': causal}
    arrays = [('q', query)] if causal else [('q', query), ('v', value)]
    return apart(ours(tutti, [settings], arrays, names_of(theirs, 'l')), expected)


# ---- training: losses, metrics, optimizers, regularizers, constraints ----

def net(kernel_settings=None, last=None):
    k = keras.Sequential([keras.Input((6,)), L.Dense(5, 'tanh', **(kernel_settings or {})),
                          L.Dense(4, last)])
    for layer in k.layers:
        random_weights(layer)
    return k


def train(training, k, compiled, batches, steps, settings=None):
    """Our logs of each step, and the weights at the end."""
    layers = [{'kind': 'dense', 'name': 'a', 'units': 5, 'activation': 'tanh', **(settings or {})},
              {'kind': 'dense', 'name': 'b', 'units': 4,
               'activation': k.layers[1].activation.__name__}]
    weights = {f'{name}/{part}': w.numpy() for name, layer in zip('ab', k.layers)
               for part, w in zip(('kernel', 'bias'), layer.weights)}
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder, layers, [('x', batches['x'][0])], weights, compiled)
        np.savez(folder + '/batches.npz', **batches)
        done = subprocess.run([training, folder + '/m', folder + '/batches.npz', str(steps),
                               folder + '/out'], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return ([json.loads(line) for line in done.stdout.splitlines()],
                safetensors.numpy.load_file(folder + '/out.safetensors'))


def compiled(loss='mse', optimizer=None, metric=None, **loss_settings):
    return {'optimizer': optimizer or {'kind': 'sgd', 'learning_rate': 0.1},
            'losses': [{'output': 0, 'loss': loss, 'weight': 1.0, 'reduction': 0, **loss_settings}],
            'metrics': [] if metric is None else [{'output': 0, 'name': 'm', **metric}]}


def check_training(training, k, theirs, ours_compiled, batches, steps=5, settings=None,
                   metric=None):
    """The largest distance of losses, metrics and weights over the steps."""
    optimizer, loss = theirs
    worst = 0.0
    logs, weights = train(training, k, ours_compiled, batches, steps, settings)
    k.compile(optimizer, loss, metrics=[metric] if metric is not None else None)
    for i in range(steps):
        row = {name: value[i % len(value)] for name, value in batches.items()}
        found = k.train_on_batch(row['x'], row['y'], sample_weight=row.get('z'), return_dict=True)
        worst = max(worst, apart(np.array(logs[i]['loss']), np.array(float(found['loss']))))
        if metric is not None:
            value = [v for n, v in found.items() if n != 'loss'][0]
            ours = [v for n, v in logs[i].items() if n not in ('loss', 'lr')][0]
            worst = max(worst, apart(np.array(ours), np.array(float(value))))
    for name, layer in zip('ab', k.layers):
        for part, w in zip(('kernel', 'bias'), layer.weights):
            worst = max(worst, apart(weights[f'{name}/{part}'], w.numpy()))
    return worst


def batches_of(kind, count=5, size=8, weights=False):
    made = {'x': f(count, size, 6)}
    if kind == 'classes':
        made['y'] = DRAW.integers(0, 4, (count, size)).astype(np.int64)
    elif kind == 'one_hot':
        made['y'] = np.eye(4, dtype=np.float32)[DRAW.integers(0, 4, (count, size))]
    elif kind == 'bits':
        made['y'] = DRAW.integers(0, 2, (count, size, 4)).astype(np.float32)
    elif kind == 'probabilities':
        made['y'] = DRAW.dirichlet(np.ones(4), (count, size)).astype(np.float32)
    else:
        made['y'] = np.abs(f(count, size, 4)) if kind == 'positive' else f(count, size, 4)
    if weights:
        made['z'] = DRAW.random((count, size)).astype(np.float32)
    return made


def training_cases():
    K, O = keras.losses, keras.optimizers
    losses = [
        ('sparse_cross_entropy', K.SparseCategoricalCrossentropy(from_logits=True), 'classes',
         {'from_logits': True}),
        ('cross_entropy', K.CategoricalCrossentropy(from_logits=True), 'one_hot',
         {'from_logits': True}),
        ('cross_entropy', K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2),
         'one_hot', {'from_logits': True, 'label_smoothing': 0.2}),
        ('binary_cross_entropy', K.BinaryCrossentropy(from_logits=True), 'bits',
         {'from_logits': True}),
        ('binary_cross_entropy', K.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
         'bits', {'from_logits': True, 'label_smoothing': 0.2}),
        ('binary_focal', K.BinaryFocalCrossentropy(from_logits=True), 'bits',
         {'from_logits': True}),
        ('mse', K.MeanSquaredError(), 'numbers', {}), ('mae', K.MeanAbsoluteError(), 'numbers', {}),
        ('mape', K.MeanAbsolutePercentageError(), 'numbers', {}),
        ('msle', K.MeanSquaredLogarithmicError(), 'positive', {}),
        ('huber', K.Huber(), 'numbers', {}), ('huber', K.Huber(0.3), 'numbers', {'delta': 0.3}),
        ('log_cosh', K.LogCosh(), 'numbers', {}), ('hinge', K.Hinge(), 'bits', {}),
        ('squared_hinge', K.SquaredHinge(), 'bits', {}),
        ('categorical_hinge', K.CategoricalHinge(), 'one_hot', {}),
        ('poisson', K.Poisson(), 'positive', {}),
        ('kl_divergence', K.KLDivergence(), 'probabilities', {}),
        ('cosine_similarity', K.CosineSimilarity(), 'numbers', {})]
    for name, theirs, kind, settings in losses:
        for weights in (False, True):
            rate = 1e-4 if name == 'mape' else 0.1
            yield (f'loss {name} {settings} {"weighted" if weights else ""}', (O.SGD(rate), theirs),
                   compiled(name, {'kind': 'sgd', 'learning_rate': rate}, **settings),
                   batches_of(kind, weights=weights),
                   {'last': 'softplus'} if name == 'poisson' else {})
    for name, theirs, kind, last in (
            ('sparse_cross_entropy', K.SparseCategoricalCrossentropy(), 'classes', 'softmax'),
            ('cross_entropy', K.CategoricalCrossentropy(), 'one_hot', 'softmax'),
            ('binary_cross_entropy', K.BinaryCrossentropy(), 'bits', 'sigmoid'),
            ('binary_focal', K.BinaryFocalCrossentropy(), 'bits', 'sigmoid')):
        yield (f'loss {name} of probabilities', (O.SGD(0.1), theirs), compiled(name),
               batches_of(kind), {'last': last})
    yield ('metric auc', (O.SGD(0.1), K.BinaryCrossentropy()),
           compiled('binary_cross_entropy', None, {'metric': 'auc'}), batches_of('bits', size=64),
           {'last': 'sigmoid', 'metric': keras.metrics.AUC()})
    for reduction, number in (('sum', 1), ('mean_with_sample_weight', 2)):
        made = compiled('mse')
        made['losses'][0]['reduction'] = number
        yield (f'reduction {reduction}', (O.SGD(0.01 if number == 1 else 0.1),
                                          K.MeanSquaredError(reduction=reduction)),
               {**made, 'optimizer': {'kind': 'sgd', 'learning_rate': 0.01 if number == 1 else 0.1}},
               batches_of('numbers', weights=number == 2), {})
    optimizers = [
        ('sgd', O.SGD(0.1, 0.9), {'momentum': 0.9}), ('sgd', O.SGD(0.1), {}),
        ('sgd', O.SGD(0.1, 0.9, True), {'momentum': 0.9, 'nesterov': 1}),
        ('adam', O.Adam(0.1), {}), ('adam', O.Adam(0.1, amsgrad=True), {'amsgrad': 1}),
        ('adamw', O.AdamW(0.1, weight_decay=0.01), {'weight_decay': 0.01}),
        ('adagrad', O.Adagrad(0.1), {}), ('adadelta', O.Adadelta(0.1), {}),
        ('rmsprop', O.RMSprop(0.1), {}),
        ('rmsprop', O.RMSprop(0.1, momentum=0.5, centered=True), {'momentum': 0.5, 'centered': 1}),
        ('adamax', O.Adamax(0.1), {}), ('nadam', O.Nadam(0.1), {}), ('lamb', O.Lamb(0.1), {}),
        ('lion', O.Lion(0.01), {'learning_rate': 0.01}),
        ('sgd', O.SGD(0.1, weight_decay=0.1), {'weight_decay': 0.1}),
        ('adam', O.Adam(0.1, clipvalue=0.01), {'clip_value': 0.01}),
        ('adam', O.Adam(0.1, clipnorm=0.01), {'clip_norm': 0.01}),
        ('sgd', O.SGD(0.1, global_clipnorm=0.1), {'global_clip_norm': 0.1})]
    for name, theirs, settings in optimizers:
        yield (f'optimizer {name} {settings}', (theirs, keras.losses.MeanSquaredError()),
               compiled('mse', {'kind': name, 'learning_rate': 0.1, **settings}),
               batches_of('numbers'), {'steps': 12})
    M = keras.metrics
    classes = {'from_logits': True}
    for name, theirs, kind, settings in (
            ('accuracy', 'accuracy', 'classes', classes),
            ('sparse_accuracy', M.SparseCategoricalAccuracy(), 'classes', classes),
            ('categorical_accuracy', M.CategoricalAccuracy(), 'one_hot', classes),
            ('binary_accuracy', M.BinaryAccuracy(threshold=0.5), 'bits', {}),
            ('top_k_accuracy', M.SparseTopKCategoricalAccuracy(2), 'classes', {'k': 2}),
            ('precision', M.Precision(), 'bits', {}), ('recall', M.Recall(), 'bits', {}),
            ('mse', M.MeanSquaredError(), 'numbers', {}), ('mae', M.MeanAbsoluteError(), 'numbers', {}),
            ('rmse', M.RootMeanSquaredError(), 'numbers', {})):
        loss = {'classes': ('sparse_cross_entropy',
                            keras.losses.SparseCategoricalCrossentropy(from_logits=True), classes),
                'one_hot': ('cross_entropy', keras.losses.CategoricalCrossentropy(from_logits=True),
                            classes)}.get(kind, ('mse', keras.losses.MeanSquaredError(), {}))
        yield (f'metric {name}', (O.SGD(0.1), loss[1]),
               compiled(loss[0], None, {'metric': name, **settings}, **loss[2]), batches_of(kind),
               {'metric': theirs})
    R, C = keras.regularizers, keras.constraints
    for text, theirs in (('l1(0.01)', R.L1(0.01)), ('l2(0.02)', R.L2(0.02)),
                         ('l1_l2(0.01,0.02)', R.L1L2(0.01, 0.02))):
        yield (f'regularizer {text}', (O.SGD(0.1), keras.losses.MeanSquaredError()), compiled(),
               batches_of('numbers'), {'net': {'kernel_regularizer': theirs},
                                       'settings': {'kernel_regularizer': text}})
    for text, theirs in (('max_norm(0.5)', C.MaxNorm(0.5)), ('unit_norm', C.UnitNorm()),
                         ('non_negative', C.NonNeg()), ('min_max_norm(0.2,0.6)', C.MinMaxNorm(0.2, 0.6))):
        yield (f'constraint {text}', (O.SGD(0.1), keras.losses.MeanSquaredError()), compiled(),
               batches_of('numbers'), {'net': {'kernel_constraint': theirs},
                                       'settings': {'kernel_constraint': text}})


def main():
    tutti, training, text = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else ''
    count, bad = 0, 0

    def judge(name, limit, work):
        nonlocal count, bad
        if text not in name:
            return
        try:
            off = work()
            wrong = '' if off <= limit else f'apart by {off:.1e}'
        except Exception as error:  # what either library says
            wrong = f'{type(error).__name__}: {str(error)[:300]}'
        count += 1
        bad += wrong != ''
        if wrong:
            print(f'FAIL {name}: {wrong}', flush=True)

    for name, theirs, settings, inputs in layer_cases():
        # TensorFlow's cubic weights come from a table of 1024.
        judge('layer ' + name, 1e-3 if 'cubic' in name else 2e-6, lambda: check_layer(tutti, theirs, settings, inputs))
    for name, theirs, settings, x in chain_cases():
        judge(name, 2e-6, lambda: check_chain(tutti, theirs, settings, x))
    for causal in (False, True):
        judge(f'layer multi_head_attention {causal}', 2e-6, lambda: check_attention(tutti, causal))
    for name, theirs, ours_compiled, batches, more in training_cases():
        if text in name:
            k = net(more.pop('net', None), more.pop('last', None))
            judge(name, 5e-5, lambda: check_training(training, k, theirs, ours_compiled, batches,
                                                     **more))
    print(f'{count - bad} of {count} agree with Keras')
    return bad != 0


if __name__ == '__main__':
    sys.exit(main())
