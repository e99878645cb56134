// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The Waterfill authors
//
// A dumbbell of TCP flows in ns-3, set as Waterfill's simulator is, for validation/ns3.py.
//
// This program is free software; you can redistribute it and/or modify it under the terms of the
// GNU General Public License version 2 as published by the Free Software Foundation (the text is
// in LICENSES). It is distributed in the hope that it will be useful, but WITHOUT ANY
// WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
// PURPOSE. It is linked with ns-3, which has the same licence, and with nothing of Waterfill.
//
//   host 0 ──┐
//   host 1 ──┤ access: no limit to speak of,      bottleneck: rate, delay, queue,
//     …      ├─ router ───────────────────────────────────────────────────────── sink
//   host n ──┘ delay that pads the RTT             random loss, forward only
//
// Prints one JSON document. Why each setting is what it is: README.md.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace ns3;

// What a full packet is made of. Linux and ns-3 pad the 10 bytes of the timestamp option to 12.
constexpr uint32_t kIpPacketBytes = 1500;
constexpr uint32_t kHeaderBytes = 20 + 20 + 12;
constexpr uint32_t kPayloadBytes = kIpPacketBytes - kHeaderBytes;
// ns-3's point-to-point link adds these to every packet; its rate is raised by as much.
constexpr uint32_t kPppBytes = 2;
// More than four bandwidth-delay products of 1 Gbit/s and 200 ms.
constexpr uint32_t kSocketBufferBytes = 128u << 20;
// Access: a packet takes 0.12 µs.
constexpr const char* kAccessRate = "100Gbps";

struct Options
{
    std::string law = "newreno";
    std::string recovery = "prr";
    bool sack = true;
    std::string rtt_s = "0.1"; // one a flow, separated by commas
    double rate_bps = 1e9;
    double delay_s = 0.001; // the bottleneck's own, one way
    double loss = 0.0;
    uint32_t buffer_packets = 1000;
    double duration_s = 60.0;
    double from_s = 20.0; // figures are of [from_s, duration_s]
    uint32_t batches = 10;
    uint32_t delack = 1;
    bool reno_friendly = true;
    uint32_t run = 1;
};

struct Flow
{
    double rtt_s;
    Ptr<BulkSendApplication> sender;
    Ptr<PacketSink> sink;
    std::vector<uint64_t> received_bytes; // in order, at the end of each batch
    uint64_t timeouts = 0;
};

/// What the traces count from `from_s` on.
struct Counts
{
    double from_s;
    uint64_t lost = 0;    // by the random loss
    uint64_t dropped = 0; // by the full queue
    uint64_t packets = 0; // data through the bottleneck, lost ones included
    uint32_t largest_bytes = 0;

    bool Counting() const { return Simulator::Now().GetSeconds() >= from_s; }
};

[[noreturn]] void
Refuse(const std::string& what)
{
    std::cerr << "dumbbell: " << what << "\n";
    std::exit(2);
}

std::vector<double>
Numbers(const std::string& list)
{
    std::vector<double> numbers;
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');)
    {
        try
        {
            numbers.push_back(std::stod(word));
        }
        catch (const std::exception&)
        {
            Refuse("rtt: must be seconds separated by commas, got \"" + list + "\"");
        }
    }
    return numbers;
}

/// Whether this ns-3 has the Reno-friendly region of CUBIC (RFC 9438, 4.3) at all.
bool
HasRenoFriendlyRegion()
{
    TypeId::AttributeInformation information;
    return TcpCubic::GetTypeId().LookupAttributeByName("TcpFriendliness", &information);
}

void
Configure(const Options& options)
{
    if (options.law == "newreno")
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    }
    else if (options.law == "linuxreno")
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                           TypeIdValue(TypeId::LookupByName("ns3::TcpLinuxReno")));
    }
    else if (options.law == "cubic")
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    }
    else
    {
        Refuse("law: must be newreno, linuxreno or cubic, got \"" + options.law + "\"");
    }
    if (options.recovery != "prr" && options.recovery != "classic")
    {
        Refuse("recovery: must be prr or classic, got \"" + options.recovery + "\"");
    }
    Config::SetDefault(
        "ns3::TcpL4Protocol::RecoveryType",
        TypeIdValue(TypeId::LookupByName(options.recovery == "prr" ? "ns3::TcpPrrRecovery"
                                                                   : "ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpCubic::FastConvergence", BooleanValue(true));
    if (HasRenoFriendlyRegion())
    {
        Config::SetDefault("ns3::TcpCubic::TcpFriendliness", BooleanValue(options.reno_friendly));
    }

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayloadBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBufferBytes));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(options.delack));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(options.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(TcpSocketState::Off));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1.0)));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(false));
}

void
OnCongestionState(Flow* flow,
                  const Counts* counts,
                  TcpSocketState::TcpCongState_t before,
                  TcpSocketState::TcpCongState_t now)
{
    if (counts->Counting() && now == TcpSocketState::CA_LOSS && before != now)
    {
        ++flow->timeouts;
    }
}

/// Builds the network; fills `flows` (one per RTT) and connects `counts`.
void
Build(const Options& options, std::vector<std::unique_ptr<Flow>>& flows, Counts& counts)
{
    NodeContainer hosts(flows.size());
    NodeContainer ends(2);
    Ptr<Node> router = ends.Get(0);
    Ptr<Node> sink = ends.Get(1);
    InternetStackHelper internet;
    internet.Install(hosts);
    internet.Install(ends);

    PointToPointHelper bottleneck;
    const double ppp_bps = options.rate_bps * (kIpPacketBytes + kPppBytes) / kIpPacketBytes;
    bottleneck.SetDeviceAttribute("DataRate",
                                  DataRateValue(DataRate(static_cast<uint64_t>(ppp_bps + 0.5))));
    bottleneck.SetChannelAttribute("Delay", TimeValue(Seconds(options.delay_s)));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>",
                        "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.buffer_packets)));
    NetDeviceContainer wire = bottleneck.Install(ends);

    Ptr<RateErrorModel> loss = CreateObject<RateErrorModel>();
    loss->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
    loss->SetRate(options.loss);
    loss->AssignStreams(1);
    wire.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(loss));

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer wire_addresses = addresses.Assign(wire);
    NetDeviceContainer all(wire);

    for (std::size_t i = 0; i < flows.size(); ++i)
    {
        Flow& flow = *flows[i];
        const double pad_s = flow.rtt_s / 2 - options.delay_s;
        if (pad_s < 0)
        {
            Refuse("rtt: must be at least twice the bottleneck's delay");
        }
        PointToPointHelper access;
        access.SetDeviceAttribute("DataRate", StringValue(kAccessRate));
        access.SetChannelAttribute("Delay", TimeValue(Seconds(pad_s)));
        access.SetQueue("ns3::DropTailQueue<Packet>",
                        "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 10'000'000)));
        NetDeviceContainer devices = access.Install(hosts.Get(i), router);
        addresses.NewNetwork();
        addresses.Assign(devices);
        all.Add(devices);

        const auto port = static_cast<uint16_t>(5000 + i);
        PacketSinkHelper receive("ns3::TcpSocketFactory",
                                 InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer receiving = receive.Install(sink);
        flow.sink = DynamicCast<PacketSink>(receiving.Get(0));
        BulkSendHelper send("ns3::TcpSocketFactory",
                            InetSocketAddress(wire_addresses.GetAddress(1), port));
        send.SetAttribute("MaxBytes", UintegerValue(0));
        // Whole segments: the socket cuts a packet where a write ends and the buffer's is empty.
        send.SetAttribute("SendSize", UintegerValue(kPayloadBytes));
        ApplicationContainer sending = send.Install(hosts.Get(i));
        flow.sender = DynamicCast<BulkSendApplication>(sending.Get(0));
    }
    // Assigning addresses has put FQ-CoDel before every device: away with it, the device's queue is the queue.
    TrafficControlHelper().Uninstall(all);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    wire.Get(0)->TraceConnectWithoutContext(
        "PhyTxEnd",
        Callback<void, Ptr<const Packet>>([&counts](Ptr<const Packet> packet) {
            counts.largest_bytes = std::max(counts.largest_bytes, packet->GetSize());
            counts.packets += counts.Counting();
        }));
    wire.Get(1)->TraceConnectWithoutContext(
        "PhyRxDrop",
        Callback<void, Ptr<const Packet>>(
            [&counts](Ptr<const Packet>) { counts.lost += counts.Counting(); }));
    // A full device queue stops its owner, so packets are dropped by the traffic control layer
    // above it; the device's own trace is there should a version of ns-3 do otherwise.
    const auto dropped = Callback<void, Ptr<const Packet>>(
        [&counts](Ptr<const Packet>) { counts.dropped += counts.Counting(); });
    router->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", dropped);
    wire.Get(0)->TraceConnectWithoutContext("MacTxDrop", dropped);
}

void
Print(const Options& options, const std::vector<std::unique_ptr<Flow>>& flows, const Counts& counts, double wall_s)
{
    const double batch_s = (options.duration_s - options.from_s) / options.batches;
    std::printf("{\"law\": \"%s\", \"recovery\": \"%s\", \"sack\": %s, \"reno_friendly\": %s,\n",
                options.law.c_str(),
                options.recovery.c_str(),
                options.sack ? "true" : "false",
                HasRenoFriendlyRegion() && options.reno_friendly ? "true" : "false");
    std::printf(" \"packet_bytes\": %u, \"payload_bytes\": %u, \"measure_s\": [%.9g, %.9g],\n",
                counts.largest_bytes - kPppBytes,
                kPayloadBytes,
                options.from_s,
                options.duration_s);
    std::printf(" \"lost\": %llu, \"dropped\": %llu, \"packets\": %llu, \"wall_s\": %.3g,\n",
                static_cast<unsigned long long>(counts.lost),
                static_cast<unsigned long long>(counts.dropped),
                static_cast<unsigned long long>(counts.packets),
                wall_s);
    std::printf(" \"flows\": [");
    for (std::size_t i = 0; i < flows.size(); ++i)
    {
        const Flow& flow = *flows[i];
        std::printf("%s\n  {\"rtt_s\": %.9g, \"timeouts\": %llu, \"packets_per_s\": [",
                    i == 0 ? "" : ",",
                    flow.rtt_s,
                    static_cast<unsigned long long>(flow.timeouts));
        for (uint32_t b = 0; b < options.batches; ++b)
        {
            const uint64_t bytes = flow.received_bytes[b + 1] - flow.received_bytes[b];
            std::printf("%s%.9g",
                        b == 0 ? "" : ", ",
                        static_cast<double>(bytes) / kPayloadBytes / batch_s);
        }
        std::printf("]}");
    }
    std::printf("]}\n");
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    CommandLine command(__FILE__);
    command.AddValue("law", "newreno, linuxreno or cubic", options.law);
    command.AddValue("recovery", "prr or classic", options.recovery);
    command.AddValue("sack", "selective acknowledgements", options.sack);
    command.AddValue("rtt", "base RTTs in seconds, one per flow", options.rtt_s);
    command.AddValue("rate", "bottleneck in bit/s of IP packets", options.rate_bps);
    command.AddValue("delay", "bottleneck's delay one way in seconds", options.delay_s);
    command.AddValue("loss", "probability of a loss, data only", options.loss);
    command.AddValue("buffer", "drop-tail queue in packets", options.buffer_packets);
    command.AddValue("duration", "simulated seconds", options.duration_s);
    command.AddValue("from", "figures from this second on", options.from_s);
    command.AddValue("batches", "equal parts of the measured time", options.batches);
    command.AddValue("delack", "packets an acknowledgement", options.delack);
    command.AddValue("reno-friendly", "CUBIC's Reno-friendly region, if there", options.reno_friendly);
    command.AddValue("run", "number of the random streams", options.run);
    command.Parse(argc, argv);
    if (options.batches == 0 || options.from_s < 0 || options.from_s >= options.duration_s)
    {
        Refuse("0 <= from < duration must hold, with at least one batch");
    }

    Configure(options);
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(options.run);
    std::vector<std::unique_ptr<Flow>> flows;
    for (const double rtt_s : Numbers(options.rtt_s))
    {
        flows.push_back(std::make_unique<Flow>());
        flows.back()->rtt_s = rtt_s;
    }
    if (flows.empty())
    {
        Refuse("rtt: must have at least one value");
    }
    Counts counts{options.from_s};
    Build(options, flows, counts);

    // A socket is there once its application has started.
    Simulator::Schedule(NanoSeconds(1), [&flows, &counts] {
        for (auto& flow : flows)
        {
            flow->sender->GetSocket()->TraceConnectWithoutContext(
                "CongState",
                MakeBoundCallback(&OnCongestionState, flow.get(), const_cast<const Counts*>(&counts)));
        }
    });
    for (uint32_t b = 0; b <= options.batches; ++b)
    {
        const double at_s =
            options.from_s + (options.duration_s - options.from_s) * b / options.batches;
        Simulator::Schedule(Seconds(at_s), [&flows] {
            for (auto& flow : flows)
            {
                flow->received_bytes.push_back(flow->sink->GetTotalRx());
            }
        });
    }
    Simulator::Stop(Seconds(options.duration_s) + NanoSeconds(1));
    const auto began = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
    Print(options, flows, counts, wall.count());
    Simulator::Destroy();
    return 0;
}
