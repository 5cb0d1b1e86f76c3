#===- trace_file.py - reads traces in Perfetto's format --------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Reads a trace as Perfetto's trace processor does: packets, and the slices, counters and flows that they mean.

Knows the part of the format that Weft writes, by Perfetto's own names, and refuses anything else. Shares no code with
runtime/report/TraceWriter.cpp.
"""

from dataclasses import dataclass, field


class TraceError(RuntimeError):
    """The bytes are no trace that Weft writes."""


# Numbers, fixed numbers, texts, and messages, as dictionaries of their fields. A list: the field may repeat.
UINT, FIXED, TEXT = "uint", "fixed", "text"
ENTRY = {1: ("iid", UINT), 2: ("name", TEXT)}
ARGUMENT = {1: ("name_iid", UINT), 3: ("uint_value", UINT), 17: ("string_value_iid", UINT)}
EVENT = {3: ("category_iids", [UINT]), 4: ("debug_annotations", [ARGUMENT]), 9: ("type", UINT), 10: ("name_iid", UINT),
         11: ("track_uuid", UINT), 30: ("counter_value", UINT), 47: ("flow_ids", [FIXED]),
         48: ("terminating_flow_ids", [FIXED])}
TABLES = {1: ("event_categories", [ENTRY]), 2: ("event_names", [ENTRY]), 3: ("debug_annotation_names", [ENTRY]),
          29: ("debug_annotation_string_values", [{1: ("iid", UINT), 2: ("str", TEXT)}])}
TRACK = {1: ("uuid", UINT), 2: ("name", TEXT), 5: ("parent_uuid", UINT), 8: ("counter", {3: ("unit", UINT)}),
         11: ("child_ordering", UINT), 12: ("sibling_order_rank", UINT)}
PACKET = {8: ("timestamp", UINT), 10: ("trusted_packet_sequence_id", UINT), 11: ("track_event", EVENT),
          12: ("interned_data", TABLES), 13: ("sequence_flags", UINT), 60: ("track_descriptor", TRACK)}
TRACE = {1: ("packet", [PACKET])}
BEGIN, END, COUNTER = 1, 2, 4


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def raw_field(data, at):
    """The number of the field at a place, its value, and the place behind it."""
    key, at = varint(data, at)
    if key & 7 == 0:
        value, at = varint(data, at)
        return key >> 3, UINT, value, at
    if key & 7 == 1:
        return key >> 3, FIXED, int.from_bytes(data[at:at + 8], "little"), at + 8
    if key & 7 != 2:
        raise TraceError(f"field {key >> 3} has wire type {key & 7}")
    size, at = varint(data, at)
    if at + size > len(data):
        raise TraceError(f"field {key >> 3} goes beyond its message")
    return key >> 3, TEXT, data[at:at + size], at + size


def message(data, schema):
    """The fields of a message, by their names."""
    at, fields = 0, {}
    while at < len(data):
        number, wire, value, at = raw_field(data, at)
        if number not in schema:
            raise TraceError(f"unknown field {number}")
        name, kind = schema[number]
        repeats = isinstance(kind, list)
        kind = kind[0] if repeats else kind
        if wire != (TEXT if isinstance(kind, dict) else kind):
            raise TraceError(f"field {name} has another type")
        value = message(value, kind) if isinstance(kind, dict) else value.decode() if wire == TEXT else value
        if repeats:
            fields.setdefault(name, []).append(value)
        elif name in fields:
            raise TraceError(f"field {name} comes twice")
        else:
            fields[name] = value
    return fields


@dataclass
class Slice:
    """A slice of a track. `track` has the names of the track and those above it, from the top."""
    track: tuple
    name: str
    category: str
    arguments: dict
    begin: int
    # The slice in which it is, or None.
    parent: object = None
    end: int = None
    flows: list = field(default_factory=list)
    last_flows: list = field(default_factory=list)

    @property
    def duration(self):
        return self.end - self.begin


class Trace:
    """The packets of a trace; its slices, in the order of their begins; the values of counters by track."""

    def __init__(self, data):
        self.packets = message(data, TRACE).get("packet", [])
        self.slices, self.counters = [], {}
        # Of each sequence: its tables of texts.
        self.texts = {}
        self.tracks, self.open, self.times = {}, {}, {}
        for packet in self.packets:
            self.read(packet)
        unfinished = [one.name for stack in self.open.values() for one in stack]
        if unfinished:
            raise TraceError(f"slices without an end: {unfinished}")

    def read(self, packet):
        sequence = packet["trusted_packet_sequence_id"]
        if packet.get("sequence_flags") == 1:
            self.texts[sequence] = {}
        tables = self.texts[sequence]
        for table, entries in packet.get("interned_data", {}).items():
            for entry in entries:
                if entry["iid"] in tables.setdefault(table, {}):
                    raise TraceError(f"{table} has {entry['iid']} twice")
                tables[table][entry["iid"]] = entry.get("name", entry.get("str"))
        if "track_descriptor" in packet:
            self.add_track(packet["track_descriptor"])
        if "track_event" in packet:
            self.add_event(packet["timestamp"], packet["track_event"], tables)

    def add_track(self, track):
        above = self.tracks[track["parent_uuid"]] if "parent_uuid" in track else ()
        names = above + (track["name"],)
        if track["uuid"] in self.tracks or names in self.tracks.values():
            raise TraceError(f"there are two tracks {track['uuid']} or {names}")
        self.tracks[track["uuid"]] = names
        if "counter" in track:
            self.counters[names] = []

    def add_event(self, time, event, tables):
        track = self.tracks[event["track_uuid"]]
        if time < self.times.get(track, 0):
            raise TraceError(f"the times of {track} do not ascend")
        self.times[track] = time
        if event["type"] == COUNTER:
            self.counters[track].append((time, event["counter_value"]))
        elif event["type"] == BEGIN:
            self.begin(track, time, event, tables)
        elif event["type"] == END:
            ended = self.open[track].pop()
            ended.end = time
            ended.last_flows = event.get("terminating_flow_ids", [])
        else:
            raise TraceError(f"unknown type {event['type']}")

    def begin(self, track, time, event, tables):
        names = tables["debug_annotation_names"] if "debug_annotations" in event else {}
        arguments = {}
        for each in event.get("debug_annotations", []):
            arguments[names[each["name_iid"]]] = (
                tables["debug_annotation_string_values"][each["string_value_iid"]] if "string_value_iid" in each
                else each["uint_value"])
        stack = self.open.setdefault(track, [])
        categories = [tables["event_categories"][number] for number in event["category_iids"]]
        begun = Slice(track, tables["event_names"][event["name_iid"]], categories[0], arguments, time,
                      stack[-1] if stack else None, flows=event.get("flow_ids", []))
        stack.append(begun)
        self.slices.append(begun)

    def of(self, *names, category=None):
        """The slices whose track's names begin with `names`, of one category if it is given."""
        return [one for one in self.slices
                if one.track[:len(names)] == names and category in (None, one.category)]

    def arrows(self):
        """Pairs of slices that flows connect, as the trace processor draws them: a flow goes on from slice to slice
        that begins with it, in the order of time, and ends where one ends with it."""
        events = [(one.begin, index, flow, False) for index, one in enumerate(self.slices) for flow in one.flows]
        events += [(one.end, index, flow, True) for index, one in enumerate(self.slices) for flow in one.last_flows]
        latest, arrows = {}, []
        for _, index, flow, is_last in sorted(events, key=lambda event: event[0]):
            if flow in latest:
                arrows.append((self.slices[latest[flow]], self.slices[index]))
            if is_last:
                latest.pop(flow, None)
            else:
                latest[flow] = index
        return arrows


def read(path):
    return Trace(path.read_bytes())
