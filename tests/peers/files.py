#!/usr/bin/env python3
"""Files that Tutti writes, read by the programs whose formats they are, and the reverse.

    python3 tests/peers/files.py PROGRAM     (tests/peers/files.c, compiled)

Needs numpy, safetensors, torch, tensorflow and tensorboard."""
import json
import os
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warnings.filterwarnings('ignore')
import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import tensorflow as tf
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TYPES = {'f32': np.float32, 'f64': np.float64, 'f16': np.float16, 'bf16': None, 'i8': np.int8,
         'u8': np.uint8, 'i32': np.int32, 'i64': np.int64, 'bool': np.bool_}
K = np.arange(15).reshape(3, 5)


def values(name):
    """Element k, by type: see files.c."""
    if name == 'bool':
        return K % 2 == 1
    if name == 'u8':
        return K.astype(np.uint8)
    if 'f' in name:
        return (K / 2 - 1).astype(TYPES[name] or np.float32)
    return (K - 1).astype(TYPES[name])


def same(found, name, shape=(3, 5)):
    expected = values(name).reshape(shape)
    assert found.shape == expected.shape, (name, found.shape)
    assert name == 'bf16' or found.dtype == expected.dtype, (name, found.dtype)
    assert np.array_equal(found, expected), (name, found)


def read_safetensors(folder):
    tensors = safetensors.torch.load_file(folder + '/ours.safetensors')
    assert set(tensors) == set(TYPES)
    for name, tensor in tensors.items():
        assert (tensor.dtype == torch.bfloat16) == (name == 'bf16')
        same(tensor.float().numpy() if name == 'bf16' else tensor.numpy(), name)
    with safetensors.safe_open(folder + '/ours.safetensors', 'np') as file:
        assert file.metadata()['note'] == 'from Tutti'
    with open(folder + '/parts.safetensors.index.json', encoding='utf-8') as file:
        index = json.load(file)
    assert len(set(index['weight_map'].values())) > 1
    total = 0
    for name, part in index['weight_map'].items():
        tensor = safetensors.torch.load_file(f'{folder}/{part}')[name]
        total += tensor.numel() * tensor.element_size()
        same(tensor.float().numpy() if name == 'bf16' else tensor.numpy(), name)
    assert total == index['metadata']['total_size']


def read_numpy(folder):
    for archive in ('ours.npz', 'packed.npz'):
        with np.load(f'{folder}/{archive}') as arrays:
            assert set(arrays) == set(TYPES)
            for name in arrays:
                same(arrays[name], name)
    same(np.load(folder + '/ours.npy'), 'f32')


def read_records(folder):
    count = 0
    plain = tf.data.TFRecordDataset(folder + '/ours.tfrecord')
    packed = tf.data.TFRecordDataset(folder + '/ours.tfrecord.gz', 'GZIP')
    for record in plain.concatenate(packed):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        assert set(feature) == set(TYPES)
        for name in TYPES:
            found = feature[name].float_list if 'f' in name else feature[name].int64_list
            assert np.array_equal(np.array(found.value), values(name).ravel()), name
        count += 1
    assert count == 6


def read_events(folder):
    events = EventAccumulator(folder + '/logs', size_guidance={'tensors': 0}).Reload()
    assert set(events.Tags()['tensors']) == {'loss', 'weights', 'note'}, events.Tags()
    loss = events.Tensors('loss')
    assert [each.step for each in loss] == [0, 1, 2, 3, 4]
    for each in loss:
        assert np.float32(1 / (each.step + 1)) == tf.make_ndarray(each.tensor_proto)
    weights = tf.make_ndarray(events.Tensors('weights')[0].tensor_proto)
    assert weights.shape == (10, 3) and weights[:, 2].sum() == 15
    assert tf.make_ndarray(events.Tensors('note')[0].tensor_proto).item() == b'**bold**'
    plugins = {tag: events.SummaryMetadata(tag).plugin_data.plugin_name
               for tag in ('loss', 'weights', 'note')}
    assert plugins == {'loss': 'scalars', 'weights': 'histograms', 'note': 'text'}, plugins


def read_images(folder):
    expected = (np.arange(8 * 16 * 3) // 2).astype(np.uint8).reshape(8, 16, 3)
    for name, tolerance in (('ours.png', 0), ('ours.jpg', 40)):
        found = tf.io.decode_image(tf.io.read_file(f'{folder}/{name}')).numpy()
        assert found.shape == expected.shape
        assert np.abs(found.astype(int) - expected).max() <= tolerance, name


def write_ours(folder):
    """What Tutti must read."""
    tensors = {name: torch.from_numpy(values(name).copy()) for name in TYPES}
    tensors['bf16'] = tensors['bf16'].bfloat16()
    safetensors.torch.save_file(tensors, folder + '/theirs.safetensors', {'by': 'torch'})
    arrays = {name: values(name) for name in TYPES if name != 'bf16'}
    np.savez(folder + '/theirs.npz', **arrays)
    np.savez_compressed(folder + '/theirs_packed.npz', **arrays)
    np.save(folder + '/theirs.npy', np.asfortranarray(values('i32').astype('>i4')))
    example = tf.train.Example(features=tf.train.Features(feature={
        'reals': tf.train.Feature(float_list=tf.train.FloatList(value=values('f32').ravel())),
        'integers': tf.train.Feature(int64_list=tf.train.Int64List(value=values('i64').ravel())),
        'text': tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'a', b'']))}))
    for name, packing in (('theirs.tfrecord', ''), ('theirs.tfrecord.gz', 'GZIP')):
        with tf.io.TFRecordWriter(f'{folder}/{name}', packing) as writer:
            for _ in range(3):
                writer.write(example.SerializeToString())
    writer = tf.summary.create_file_writer(folder + '/theirs')
    with writer.as_default():
        for step in range(4):
            tf.summary.scalar('loss', step / 2, step)
    writer.close()
    written, = os.listdir(folder + '/theirs')
    os.rename(f'{folder}/theirs/{written}', folder + '/theirs.tfevents')


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, 'write', folder], check=True)
        for check in (read_safetensors, read_numpy, read_records, read_events, read_images):
            check(folder)
            print('ok  ', check.__name__)
        write_ours(folder)
        subprocess.run([program, 'read', folder], check=True)
        print('ok   what numpy, safetensors and TensorFlow wrote')


main()
