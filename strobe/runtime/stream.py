"""Bulk data from sessions to the store, each batch exactly once in effect, whichever of the two is killed when.

Plain ipc loses messages even on a clean close (libzmq #4660), so batches are numbered, kept until acknowledged, sent again after a gap.
The consumer commits rows and position in one transaction, then acknowledges; a new producer asks for the position and its `resume` mark
and continues from there. Blocking poll loops for plain threads. Frames: strobe/runtime/stream_frames.py.

    producer = StreamProducer(paths.data_endpoint(), session_id, on_ack=free_records)
    while not producer.hello(1000): ...                # then producer.position.resume: where the predecessor stopped, or None
    seq = producer.send("records", {"slices": …, "resume": mark}, [map_bytes, slot_bytes])   # None: window full
    producer.poll(20)                                  # calls on_ack(seq)

    consumer = StreamConsumer(paths.data_endpoint(), position_of, self.log)
    for batch in consumer.receive(50, 256): ...        # commit, then
    consumer.ack(batch.session, batch.epoch, batch.seq, batch.header.get("resume"))
"""

from strobe.runtime.stream_consumer import StreamConsumer
from strobe.runtime.stream_frames import WINDOW, Batch, Position, SupersededError
from strobe.runtime.stream_producer import StreamProducer

__all__ = ["WINDOW", "Batch", "Position", "StreamConsumer", "StreamProducer", "SupersededError"]
