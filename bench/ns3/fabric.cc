// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The Waterfill authors
//
// TCP flows of given sizes on a leaf-spine in ns-3, set as Waterfill's simulator is, for
// validation/fct/ns3.py.
//
// This program is free software; you can redistribute it and/or modify it under the terms of the
// GNU General Public License version 2 as published by the Free Software Foundation (the text is
// in LICENSES). It is distributed in the hope that it will be useful, but WITHOUT ANY
// WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR
// PURPOSE. It is linked with ns-3, which has the same licence, and with nothing of Waterfill.
//
//   host 0 ─┐                       ┌─ host n
//     …     ├─ leaf 0 ─ spine ─ leaf 1 ┤    …        one spine: one route between two hosts
//   host n-1┘                       └─ host 2n-1
//
// Reads a flow per line from standard input (start in seconds, source, sink, bytes), prints for each
// the time at which its sink had the last byte, or -1. The settings are those of dumbbell.cc, but
// without timestamps: headers are 40 bytes and segments 1460.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace ns3;

constexpr uint32_t kIpPacketBytes = 1500;
constexpr uint32_t kPayloadBytes = kIpPacketBytes - 20 - 20;
// ns-3's point-to-point link adds these to every packet; its rate is raised by as much.
constexpr uint32_t kPppBytes = 2;
constexpr uint32_t kSocketBufferBytes = 64u << 20;

struct Options
{
    std::string law = "newreno";
    uint32_t leaves = 2;
    uint32_t hosts = 4; // of a leaf
    double rate_bps = 1e9;
    double delay_s = 5e-6; // of each link
    uint32_t buffer_packets = 150;
    double min_rto_s = 0.01;
    double duration_s = 2.0;
};

struct Flow
{
    double start_s;
    uint32_t source;
    uint32_t sink;
    uint64_t bytes;
    uint64_t received_bytes = 0;
    double completed_s = -1;

    void OnReceive(Ptr<const Packet> packet, const Address&)
    {
        received_bytes += packet->GetSize();
        if (received_bytes == bytes)
        {
            completed_s = Simulator::Now().GetSeconds();
        }
    }
};

[[noreturn]] void
Refuse(const std::string& what)
{
    std::cerr << "fabric: " << what << "\n";
    std::exit(2);
}

void
Configure(const Options& options)
{
    if (options.law != "newreno" && options.law != "cubic")
    {
        Refuse("law: must be newreno or cubic, got \"" + options.law + "\"");
    }
    const TypeId law = options.law == "cubic" ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId();
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(law));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpPrrRecovery")));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
    Config::SetDefault("ns3::TcpCubic::FastConvergence", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kPayloadBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBufferBytes));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1.0)));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", EnumValue(TcpSocketState::Off));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(options.min_rto_s)));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(false));
}

/// Builds the network; returns the address of each host.
std::vector<Ipv4Address>
Build(const Options& options, NodeContainer& hosts)
{
    NodeContainer leaves(options.leaves);
    NodeContainer spine(1);
    hosts.Create(options.leaves * options.hosts);
    InternetStackHelper internet;
    internet.Install(hosts);
    internet.Install(leaves);
    internet.Install(spine);

    PointToPointHelper link;
    link.SetChannelAttribute("Delay", TimeValue(Seconds(options.delay_s)));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, options.buffer_packets)));
    const auto set_rate = [&link](double rate_bps) {
        const double ppp_bps = rate_bps * (kIpPacketBytes + kPppBytes) / kIpPacketBytes;
        link.SetDeviceAttribute("DataRate",
                                DataRateValue(DataRate(static_cast<uint64_t>(ppp_bps + 0.5))));
    };
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> of_host;
    set_rate(options.rate_bps);
    NetDeviceContainer all;
    for (uint32_t h = 0; h < hosts.GetN(); ++h)
    {
        NetDeviceContainer devices = link.Install(hosts.Get(h), leaves.Get(h / options.hosts));
        of_host.push_back(addresses.Assign(devices).GetAddress(0));
        addresses.NewNetwork();
        all.Add(devices);
    }
    set_rate(options.rate_bps * options.hosts);
    for (uint32_t l = 0; l < options.leaves; ++l)
    {
        NetDeviceContainer devices = link.Install(leaves.Get(l), spine.Get(0));
        addresses.Assign(devices);
        addresses.NewNetwork();
        all.Add(devices);
    }
    // Assigning addresses has put FQ-CoDel before every device: the device's queue is the queue.
    TrafficControlHelper().Uninstall(all);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return of_host;
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    CommandLine command(__FILE__);
    command.AddValue("law", "newreno or cubic", options.law);
    command.AddValue("leaves", "leaves", options.leaves);
    command.AddValue("hosts", "hosts of a leaf", options.hosts);
    command.AddValue("rate", "hosts' links in bit/s of IP packets", options.rate_bps);
    command.AddValue("delay", "each link's delay in seconds", options.delay_s);
    command.AddValue("buffer", "drop-tail queues in packets", options.buffer_packets);
    command.AddValue("min-rto", "least retransmission time-out in seconds", options.min_rto_s);
    command.AddValue("duration", "simulated seconds", options.duration_s);
    command.Parse(argc, argv);
    Configure(options);
    RngSeedManager::SetSeed(1);

    std::vector<std::unique_ptr<Flow>> flows;
    for (Flow flow{}; std::cin >> flow.start_s >> flow.source >> flow.sink >> flow.bytes;)
    {
        const uint32_t count = options.leaves * options.hosts;
        if (flow.source >= count || flow.sink >= count || flow.source == flow.sink)
        {
            Refuse("every line must have two of " + std::to_string(count) + " hosts");
        }
        flows.push_back(std::make_unique<Flow>(flow));
    }
    if (!std::cin.eof() || flows.empty())
    {
        Refuse("lines must be START SOURCE SINK BYTES");
    }

    NodeContainer hosts;
    const std::vector<Ipv4Address> addresses = Build(options, hosts);
    std::vector<uint16_t> next_port(hosts.GetN(), 1024);
    for (const auto& flow : flows)
    {
        const uint16_t port = next_port[flow->sink]++;
        PacketSinkHelper receive("ns3::TcpSocketFactory",
                                 InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer receiving = receive.Install(hosts.Get(flow->sink));
        receiving.Get(0)->TraceConnectWithoutContext("Rx",
                                                     MakeCallback(&Flow::OnReceive, flow.get()));
        BulkSendHelper send("ns3::TcpSocketFactory",
                            InetSocketAddress(addresses[flow->sink], port));
        send.SetAttribute("MaxBytes", UintegerValue(flow->bytes));
        // Whole segments: the socket cuts a packet where a write ends and the buffer's is empty.
        send.SetAttribute("SendSize", UintegerValue(kPayloadBytes));
        ApplicationContainer sending = send.Install(hosts.Get(flow->source));
        sending.Start(Seconds(flow->start_s));
    }
    Simulator::Stop(Seconds(options.duration_s));
    Simulator::Run();
    for (const auto& flow : flows)
    {
        std::printf("%.12g\n", flow->completed_s);
    }
    Simulator::Destroy();
    return 0;
}
