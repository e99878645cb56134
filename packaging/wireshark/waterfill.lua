-- SPDX-License-Identifier: Apache-2.0 OR MIT
--
-- Waterfill's TCP option in Wireshark and tshark: what sources ask, what routers wrote and what receivers answered.
--
-- Install: the Debian package puts it where Wireshark and tshark load it. Otherwise copy this file to the folder that
-- Help > About > Folders calls "Personal Lua Plugins" (~/.local/lib/wireshark/plugins), or name it:
-- tshark -X lua_script:waterfill.lua -r capture.pcapng
-- It also shows SCONE's advice in UDP (waterfill.scone.rate) and CSIG's tags (waterfill.csig.code).
-- Filters: waterfill, waterfill.law == "maxnet", waterfill.price > 4, waterfill.start_rate, waterfill.malformed …
--
-- The option is kind 253 with ExID 0x5746 (RFC 6994), then a type byte: 4 times the law's number plus 1 (forward value,
-- which routers write), 2 (echo) or 3 (forward, echo, and zeros up to a multiple of 4 bytes). Of MaxNet there is also the
-- papers' form: kind 42, echo and forward value of 3 bytes each. Each law's values are those of
-- crates/waterfill-laws/kernel/<law>.h; tests compare what this file prints with that code.

-- Also named with -X where it is installed: the first one stays, as a protocol is registered once.
if waterfill_is_loaded then return end
waterfill_is_loaded = true

local waterfill = Proto("waterfill", "Waterfill, explicit congestion control")

local EXID = 0x5746
local KIND_EXPERIMENT, KIND_PAPER = 253, 42
local FORWARD, ECHO, BOTH = 1, 2, 3

-- Made from the laws by tools/docs.py (make docs):
local LAWS = { [0] = "maxnet", [1] = "maxnet2006", [2] = "aecp", [3] = "rcp", [4] = "vcp", [5] = "xcp", [6] = "pxcp", [7] = "ixcp", [8] = "jetmax" }
local FORWARD_BYTES = { [0] = 3, [1] = 3, [2] = 3, [3] = 5, [4] = 3, [5] = 11, [6] = 11, [7] = 15, [8] = 12 }
local ECHO_BYTES = { [0] = 3, [1] = 3, [2] = 3, [3] = 3, [4] = 3, [5] = 6, [6] = 6, [7] = 8, [8] = 11 }
local DEFAULT_X_MAX = "1e15"
local DEFAULT_T = "0.4"
-- end of what is made

-- What the wire leaves to the network's configuration: these must be the hosts' and routers' own.
waterfill.prefs.x_max = Pref.string("Largest rate, bit/s", DEFAULT_X_MAX, "MaxNet's x_max, for start rates and demand")
waterfill.prefs.t = Pref.string("T, s", DEFAULT_T, "MaxNet's T, for the rate that a price stands for")
waterfill.prefs.paper = Pref.bool("Decode kind 42", true, "The papers' own form of MaxNet's option, of 8 bytes")

local TITLES = {
	[0] = "MaxNet", [1] = "MaxNet (2006)", [2] = "AECP", [3] = "RCP", [4] = "VCP",
	[5] = "XCP", [6] = "P-XCP", [7] = "iXCP", [8] = "JetMax",
}
local ROLES = { [FORWARD] = "forward", [ECHO] = "echo", [BOTH] = "both" }
local LOADS = { [0] = "not written", [1] = "low", [2] = "high", [3] = "overload" }

-- ------------------------------------------------------------------ fields

local f = {
	exid = ProtoField.uint16("waterfill.exid", "Experiment", base.HEX),
	type = ProtoField.uint8("waterfill.type", "Type", base.HEX),
	law = ProtoField.uint8("waterfill.law", "Law", base.DEC, LAWS, 0xfc),
	role = ProtoField.uint8("waterfill.role", "Values", base.DEC, ROLES, 0x03),
	paper = ProtoField.bool("waterfill.paper", "The papers' form"),
	padding = ProtoField.bytes("waterfill.padding", "Padding"),
	written = ProtoField.bool("waterfill.written", "Written by a router"),
	answered = ProtoField.bool("waterfill.echo.written", "Written by a router"),
	demand = ProtoField.double("waterfill.demand", "Rate at this price, bit/s"),
	echo_demand = ProtoField.double("waterfill.echo.demand", "Rate at this price, bit/s"),
	hops = ProtoField.uint8("waterfill.hops", "Routers passed"),
	weight = ProtoField.double("waterfill.weight", "Weight"),
	rtt = ProtoField.double("waterfill.rtt", "Source's RTT, s"),
	time_per_byte = ProtoField.double("waterfill.time_per_byte", "RTT over window, s per byte"),
	source_rate = ProtoField.double("waterfill.source_rate", "Source's RTT and window as a rate, bit/s"),
	feedback = ProtoField.double("waterfill.feedback", "Change of throughput, bit/s per segment"),
	total = ProtoField.double("waterfill.echo.total", "Sum of all feedback, bytes"),
}

-- A value that travels forward and comes back in the echo has a field for each.
local function pair(name, make, label, ...)
	f[name] = make("waterfill." .. name, label, ...)
	f["echo_" .. name] = make("waterfill.echo." .. name, label, ...)
end
pair("price", ProtoField.double, "Price, s")
pair("start_rate", ProtoField.double, "Start rate, bit/s")
pair("packet_rate", ProtoField.double, "Rate, packet/s")
pair("factor", ProtoField.uint16, "Rate factor's code", base.DEC)
pair("rate", ProtoField.double, "Rate, bit/s")
pair("share", ProtoField.double, "Bottleneck's share, bit/s")
pair("target", ProtoField.double, "Target, bit/s")
pair("load", ProtoField.uint8, "Load", base.DEC, LOADS)
pair("bottleneck", ProtoField.uint16, "Bottleneck", base.DEC)
pair("next_bottleneck", ProtoField.uint16, "Next bottleneck", base.DEC)

local e = {
	unknown_law = ProtoExpert.new("waterfill.unknown_law", "A law of an unknown number",
		expert.group.UNDECODED, expert.severity.WARN),
	unknown_type = ProtoExpert.new("waterfill.unknown_type", "A type without a value",
		expert.group.MALFORMED, expert.severity.ERROR),
	length = ProtoExpert.new("waterfill.malformed", "Another length than the law's",
		expert.group.MALFORMED, expert.severity.ERROR),
	range = ProtoExpert.new("waterfill.out_of_range", "A value beyond the law's range",
		expert.group.PROTOCOL, expert.severity.WARN),
	padding = ProtoExpert.new("waterfill.padding_not_zero", "Padding that is not zero",
		expert.group.PROTOCOL, expert.severity.WARN),
}

local fields = {}
for _, field in pairs(f) do
	fields[#fields + 1] = field
end
waterfill.fields = fields
local experts = {}
for _, info in pairs(e) do
	experts[#experts + 1] = info
end
waterfill.experts = experts

local tcp_options, tcp_syn = Field.new("tcp.options"), Field.new("tcp.flags.syn")
local udp_payload = Field.new("udp.payload")

-- ------------------------------------------------------------------ numbers

-- Returns a number with a metric prefix and four digits.
local function metric(value, unit)
	local size = math.abs(value)
	for _, scale in ipairs({ { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" }, { 1, "" }, { 1e-3, "m" }, { 1e-6, "µ" },
		{ 1e-9, "n" }, { 1e-12, "p" } }) do
		if size >= scale[1] then
			return string.format("%.4g %s%s", value / scale[1], scale[2], unit)
		end
	end
	return string.format(size == 0 and "0 %s" or "%.4g %s", size == 0 and unit or value, unit)
end

-- Returns the number of a 24-bit code of kernel/float.h: an exponent of 5 bits and a fraction of 19.
local function float24(code)
	local exponent, fraction = math.floor(code / 2 ^ 19), code % 2 ^ 19
	return exponent == 0 and fraction or (fraction + 2 ^ 19) * 2 ^ (exponent - 1)
end

local function x_max()
	return tonumber(waterfill.prefs.x_max) or tonumber(DEFAULT_X_MAX)
end

-- ------------------------------------------------------------------ values

-- A value's subtree, and the fields of its direction: `echo_price` in an echo, `price` elsewhere.
local Value = {}
Value.__index = Value

function Value:field(name)
	return f[self.echo and "echo_" .. name or name]
end

-- Adds a number with its unit, and makes it the item's summary if it has a word for it.
function Value:number(name, range, number, unit, word)
	self.tree:add(self:field(name), range, number):append_text(" (" .. metric(number, unit) .. ")")
	if word then
		self:say(word .. " " .. metric(number, unit))
	end
end

function Value:say(text)
	self.words[#self.words + 1] = text
end

-- Adds whether a router has written the value; returns it.
function Value:written(range, written)
	self.tree:add(self.echo and f.answered or f.written, range, written):set_generated()
	if not written then
		self:say(self.echo and "no router's value" or self.syn and "request" or "not written")
	end
	return written
end

-- Each function reads a law's value: the range of its bytes.
local read = {}

-- A flag (1: start rate) and 23 bits: 2^-18 s, or -ln(rate / x_max) in 2^-18.
local function read_maxnet(value, range)
	local word = range:uint()
	local start, code = word >= 2 ^ 23, word % 2 ^ 23
	if start and not value:written(range, code > 0) then
		return
	end
	if start then
		value:number("start_rate", range, x_max() * math.exp(-code / 2 ^ 18), "bit/s", "start rate")
		return
	end
	if value:written(range, code > 0) then
		local price = code / 2 ^ 18
		value:number("price", range, price, "s", "price")
		if value.law == 0 then
			local t = tonumber(waterfill.prefs.t) or tonumber(DEFAULT_T)
			local demand = x_max() * math.exp(-price / t)
			local item = value.tree:add(value.echo and f.echo_demand or f.demand, range, demand)
			item:append_text(" (" .. metric(demand, "bit/s") .. ")"):set_generated()
		end
	end
end
read[0], read[1] = read_maxnet, read_maxnet

-- 0xffff less the factor's code: 2^-10 octaves above 1/4 packet/s.
read[2] = function(value, range)
	local word = range:uint()
	if word > 0xffff then
		value.tree:add_proto_expert_info(e.range)
		word = 0xffff
	end
	if value:written(range, word > 0) then
		value.tree:add(value:field("factor"), range, 0xffff - word)
		value:number("packet_rate", range, 0.25 * 2 ^ ((0xffff - word) / 1024), "packet/s", "rate")
	end
end

-- -ln(rate / 10^15 bit/s) in 2^-18; in data also the RTT: (1 + m / 2^11) 2^e us with e of 5 bits and m of 11.
read[3] = function(value, range)
	local code = range(0, 3):uint()
	if code >= 2 ^ 23 then
		value.tree:add_proto_expert_info(e.range)
	end
	if value:written(range(0, 3), code > 0) then
		value:number("rate", range(0, 3), 1e15 * math.exp(-code / 2 ^ 18), "bit/s", "rate")
	end
	if not value.echo then
		local rtt = range(3, 2):uint()
		if rtt > 0 then
			value:number("rtt", range(3, 2), 1e-6 * (1 + rtt % 2048 / 2048) * 2 ^ math.floor(rtt / 2048), "s")
		end
	end
end

-- The code of the two ECN bits.
read[4] = function(value, range)
	local load = range:uint()
	if load > 3 then
		value.tree:add_proto_expert_info(e.range)
		load = 3
	end
	if value:written(range, load > 0) then
		value:say("load " .. LOADS[load])
	end
	value.tree:add(value:field("load"), range, load)
end

-- Data: RTT (2^-24 s), RTT over window (2^-52 s a byte), feedback (2^-8 byte/s above 2^39); echo: heard and the sum (2^-8
-- bytes, 47 bits with a sign). iXCP: names of links after that.
local function read_xcp(value, range)
	if value.echo then
		local high, low = range(0, 3):uint(), range(3, 3):uint()
		if not value:written(range(0, 6), high >= 2 ^ 23) then
			return
		end
		local total = high % 2 ^ 23 * 2 ^ 24 + low
		total = total >= 2 ^ 46 and total - 2 ^ 47 or total
		value.tree:add(f.total, range(0, 6), total / 256)
		value:say(string.format("feedback %.0f B", total / 256))
		if value.law == 7 then
			value.tree:add(f.echo_next_bottleneck, range(6, 2))
		end
		return
	end
	local rtt, time = float24(range(0, 3):uint()) / 2 ^ 24, float24(range(3, 3):uint()) / 2 ^ 52
	if rtt > 0 then
		value:number("rtt", range(0, 3), rtt, "s")
	end
	if time > 0 then
		value:number("time_per_byte", range(3, 3), time, "s")
		value:number("source_rate", range(3, 3), 8 / time, "bit/s")
	end
	local feedback = range(6, 1):uint() * 2 ^ 32 + range(7, 4):uint()
	if value:written(range(6, 5), feedback > 0) then
		value:number("feedback", range(6, 5), 8 * (feedback - 2 ^ 39) / 256, "bit/s", "feedback")
	end
	if value.law == 7 then
		value.tree:add(f.bottleneck, range(11, 2))
		value.tree:add(f.next_bottleneck, range(13, 2))
	end
end
read[5], read[6], read[7] = read_xcp, read_xcp, read_xcp

-- Rate, share and target in bit/s; in data the weight (16 + m) 2^(e-8) and the routers passed; 5 bits name a router.
read[8] = function(value, range)
	local hops = range(range:len() - 2, 2):uint()
	local written = value:written(range, hops % 32 > 0)
	if written or not value.echo then
		value:number("rate", range(0, 3), float24(range(0, 3):uint()), "bit/s")
	end
	if written then
		value:number("share", range(3, 3), float24(range(3, 3):uint()), "bit/s", "share")
		value:number("target", range(6, 3), float24(range(6, 3):uint()), "bit/s", "target")
	end
	if not value.echo then
		local weight = range(9, 1):uint()
		value.tree:add(f.weight, range(9, 1), (16 + weight % 16) * 2 ^ (math.floor(weight / 16) - 8))
		value.tree:add(f.hops, range(10, 2), math.floor(hops / 2 ^ 10) % 32)
	end
	local at = range(range:len() - 2, 2)
	value.tree:add(value:field("bottleneck"), at, math.floor(hops / 32) % 32)
	value.tree:add(value:field("next_bottleneck"), at, hops % 32)
end

-- ------------------------------------------------------------------ the option

-- Adds one value; returns its summary.
local function add_value(tree, law, echo, range)
	local syn = tcp_syn()
	local item = tree:add(range, echo and "Echo" or "Forward value")
	local value = setmetatable({ tree = item, law = law, echo = echo, syn = syn and syn.value, words = {} }, Value)
	read[law](value, range)
	local words = table.concat(value.words, ", ")
	item:append_text(": " .. words)
	return words
end

-- Shows a summary at the option and in the packet list.
local function show(item, pinfo, law, words)
	local text = TITLES[law] .. " " .. table.concat(words, "; ")
	item:append_text(": " .. text)
	pinfo.cols.info:append(" [" .. text .. "]")
end

local function dissect_values(tree, item, pinfo, law, role, range)
	local words, at = {}, 0
	if role ~= ECHO then
		words[#words + 1] = add_value(tree, law, false, range(0, FORWARD_BYTES[law]))
		at = FORWARD_BYTES[law]
	end
	if role ~= FORWARD then
		words[#words + 1] = "echo " .. add_value(tree, law, true, range(at, ECHO_BYTES[law]))
		at = at + ECHO_BYTES[law]
	end
	if at < range:len() then
		local padding = range(at)
		local padded = tree:add(f.padding, padding)
		for i = 0, padding:len() - 1 do
			if padding(i, 1):uint() ~= 0 then
				padded:add_proto_expert_info(e.padding)
				break
			end
		end
	end
	show(item, pinfo, law, words)
end

-- Returns the length of an option, header included.
local function expected_length(law, role)
	if role == FORWARD then
		return 5 + FORWARD_BYTES[law]
	elseif role == ECHO then
		return 5 + ECHO_BYTES[law]
	end
	return math.ceil((5 + FORWARD_BYTES[law] + ECHO_BYTES[law]) / 4) * 4
end

-- Dissects an option of kind 253 that has our ExID, from its kind on.
local function dissect_experiment(range, pinfo, tree)
	local item = tree:add(waterfill, range, "TCP Option - Waterfill")
	item:add(f.exid, range(2, 2))
	if range:len() < 5 then
		item:add_proto_expert_info(e.length, "The option ends before its type")
		return
	end
	local type = range(4, 1):uint()
	local law, role = math.floor(type / 4), type % 4
	item:add(f.type, range(4, 1))
	item:add(f.law, range(4, 1))
	item:add(f.role, range(4, 1))
	if not LAWS[law] then
		item:add_proto_expert_info(e.unknown_law)
	elseif role == 0 then
		item:add_proto_expert_info(e.unknown_type)
	elseif range:len() ~= expected_length(law, role) then
		local text = string.format("%d bytes; %s has %d for %s", range:len(), TITLES[law], expected_length(law, role), ROLES[role])
		item:add_proto_expert_info(e.length, text)
	else
		dissect_values(item, item, pinfo, law, role, range(5))
	end
end

-- Dissects the papers' form: kind, length, echo, forward value.
local function dissect_paper(range, pinfo, tree)
	local item = tree:add(waterfill, range, "TCP Option - Waterfill")
	item:add(f.paper, range(0, 1), true):set_generated()
	if range:len() ~= 8 then
		item:add_proto_expert_info(e.length, string.format("%d bytes; the papers' form has 8", range:len()))
		return
	end
	item:add(f.law, range(0, 1), 0):set_generated()
	item:add(f.role, range(0, 1), BOTH):set_generated()
	local forward = add_value(item, 0, false, range(5, 3))
	local echo = add_value(item, 0, true, range(2, 3))
	show(item, pinfo, 0, { forward, "echo " .. echo })
end

-- TCP's own dissector keeps kind 253, because it reads others' experiments with state that a script cannot pass on. So this
-- is a postdissector: it looks at all options of a packet once TCP has found them, also below a tunnel's headers.
local dissect_scone_option
local function dissect_options(range, pinfo, tree)
	local at, length = 0, range:len()
	while at < length do
		local kind = range(at, 1):uint()
		if kind == 0 then
			return
		elseif kind == 1 then
			at = at + 1
		else
			local size = at + 1 < length and range(at + 1, 1):uint() or 0
			if size < 2 or at + size > length then
				return -- TCP reports it
			elseif kind == KIND_EXPERIMENT and size >= 4 and range(at + 2, 2):uint() == EXID then
				dissect_experiment(range(at, size), pinfo, tree)
			elseif kind == KIND_EXPERIMENT and size == 6 and range(at + 2, 2):uint() == 0x6f7d then
				dissect_scone_option(range(at, size), pinfo, tree)
			elseif kind == KIND_PAPER and waterfill.prefs.paper then
				dissect_paper(range(at, size), pinfo, tree)
			end
			at = at + size
		end
	end
end

-- ------------------------------------------------------------------ SCONE

-- A datagram's first QUIC packet of version 0x6f7dc0fd or 0xef7dc0fd: the signal's low bit is the version's first one
-- (draft-ietf-scone-protocol). The TCP form is kind 253 with ExID 0x6f7d and the signal in the low bits of two bytes
-- (draft-eddy-tcpm-scone). crates/waterfill-laws/kernel/scone.h has the same.
local SCONE_VERSION, SCONE_UNKNOWN = 0x6f7dc0fd, 127

local scone = Proto("waterfill_scone", "SCONE, throughput advice")
local s = {
	signal = ProtoField.uint8("waterfill.scone.signal", "Signal", base.DEC),
	rate = ProtoField.double("waterfill.scone.rate", "Advised rate, bit/s"),
}
scone.fields = { s.signal, s.rate }
local scone_alone = ProtoExpert.new("waterfill.scone.alone", "No QUIC packet follows in the datagram",
	expert.group.MALFORMED, expert.severity.WARN)
scone.experts = { scone_alone }

local function add_advice(item, range, signal, pinfo)
	item:add(s.signal, range, signal)
	local text = "no advice"
	if signal ~= SCONE_UNKNOWN then
		local rate = 1e5 * 10 ^ (signal / 20)
		text = metric(rate, "bit/s")
		item:add(s.rate, range, rate):append_text(" (" .. text .. ")")
	end
	item:append_text(": " .. text)
	pinfo.cols.info:append(" [SCONE " .. text .. "]")
end

function dissect_scone_option(range, pinfo, tree)
	local item = tree:add(scone, range, "TCP Option - SCONE")
	add_advice(item, range(4, 2), range(4, 2):uint() % 128, pinfo)
end

local function dissect_scone(range, pinfo, tree)
	if range:len() < 7 or range(0, 1):uint() < 0x80 or range(1, 4):uint() % 2 ^ 31 ~= SCONE_VERSION then
		return
	end
	local signal = range(0, 1):uint() % 64 * 2 + math.floor(range(1, 1):uint() / 128)
	local item = tree:add(scone, range(0, math.min(range:len(), 7)), "SCONE")
	add_advice(item, range(0, 2), signal, pinfo)
	-- Both connection IDs, then the next packet.
	local at = 6 + range(5, 1):uint()
	at = at < range:len() and at + 1 + range(at, 1):uint() or at
	if at >= range:len() then
		item:add_proto_expert_info(scone_alone)
	end
end

-- ------------------------------------------------------------------ CSIG

-- Tags between a frame's addresses and its EtherType (SAI 1.18, doc/CSIG); kernel/csig.h has the same.
local csig = Proto("waterfill_csig", "CSIG, congestion signaling")
csig.prefs.compact = Pref.uint("EtherType of compact tags", 0x88b5, "As waterfilld csig --tpid-compact")
csig.prefs.wide = Pref.uint("EtherType of wide tags", 0x88b6, "As waterfilld csig --tpid-wide")
local SIGNALS = { [0] = "available bandwidth", [1] = "share available", [2] = "delay", [3] = "queue", [7] = "price" }
local c = {
	wide = ProtoField.bool("waterfill.csig.wide", "Wide tag"),
	type = ProtoField.uint8("waterfill.csig.type", "Signal", base.DEC, SIGNALS),
	code = ProtoField.uint32("waterfill.csig.code", "Code", base.DEC),
	locator = ProtoField.uint16("waterfill.csig.locator", "Locator", base.DEC),
	trimmed = ProtoField.bool("waterfill.csig.trimmed", "Do not update"),
	next = ProtoField.uint16("waterfill.csig.ethertype", "EtherType", base.HEX),
}
csig.fields = { c.wide, c.type, c.code, c.locator, c.trimmed, c.next }
local ethertypes = DissectorTable.get("ethertype")

-- Makes the dissector of one kind of tag; the frame's own type follows the tag.
local function csig_tag(name, wide)
	local tag = Proto(name, wide and "CSIG's wide tag" or "CSIG's compact tag")
	function tag.dissector(tvb, pinfo, tree)
		local bytes = wide and 6 or 2
		if tvb:len() < bytes + 2 then
			return 0
		end
		local range = tvb(0, bytes)
		local item = tree:add(csig, tvb(0, bytes + 2), "CSIG")
		local type, code, locator, trimmed
		if wide then
			local high, low = range(0, 2):uint(), range(2, 4):uint()
			locator, trimmed = math.floor(high / 2), high % 2
			type, code = math.floor(low / 2 ^ 28), math.floor(low / 2 ^ 8) % 2 ^ 20
		else
			local word = range:uint()
			type, code = math.floor(word / 2 ^ 13), math.floor(word / 2 ^ 7) % 32
			locator, trimmed = math.floor(word / 2) % 64, word % 2
		end
		item:add(c.wide, range, wide)
		item:add(c.type, range, type)
		item:add(c.code, range, code)
		item:add(c.locator, range, locator)
		item:add(c.trimmed, range, trimmed == 1)
		item:add(c.next, tvb(bytes, 2))
		item:append_text(string.format(": %s, code %d", SIGNALS[type] or "type " .. type, code))
		ethertypes:try(tvb(bytes, 2):uint(), tvb(bytes + 2):tvb(), pinfo, tree)
		return tvb:len()
	end
	return tag
end
local tags = { compact = csig_tag("waterfill_csig_compact", false), wide = csig_tag("waterfill_csig_wide", true) }
local registered = {}
local function register_tags()
	for kind, tag in pairs(tags) do
		if registered[kind] then
			ethertypes:remove(registered[kind], tag)
		end
		registered[kind] = csig.prefs[kind]
		ethertypes:add(registered[kind], tag)
	end
end
csig.prefs_changed = register_tags
register_tags()

-- ------------------------------------------------------------------ each packet

function waterfill.dissector(_, pinfo, tree)
	for _, options in ipairs({ tcp_options() }) do
		dissect_options(options.range, pinfo, tree)
	end
	for _, payload in ipairs({ udp_payload() }) do
		dissect_scone(payload.range, pinfo, tree)
	end
end
register_postdissector(waterfill)
