# A dumbbell in ns-2 with the settings of Waterfill's bench, for table.py beside it:
#
#   ns dumbbell.tcl -law sack -flows 10 -stagger 0.05 -rate 1e9 -rtt 0.05 -buffer 4166 -seconds 10
#
# One link each way joins the senders' node and the receivers'. Packets have 1500 bytes, acknowledgements 40.
# Prints one JSON object: packets acknowledged, and the seconds that the run took.

array set option {-law sack -flows 10 -stagger 0.05 -rate 1e9 -rtt 0.05 -buffer 4166 -seconds 10}
foreach {name value} $argv {
    if {![info exists option($name)]} {
        puts stderr "dumbbell.tcl: unknown option $name"
        exit 2
    }
    set option($name) $value
}

# Only the headers in use: each packet carries room for every header that is loaded.
remove-all-packet-headers
add-packet-header IP TCP Flags XCP

set buffer [expr {int($option(-buffer))}]
Queue set limit_ $buffer
# The acknowledgement's size, and data without the 40 bytes of headers that ns-2 adds.
Agent/TCPSink set packetSize_ 40
Agent/TCP set packetSize_ 1460
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set window_ 1000000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 1
Agent/TCP set windowInit_ 10

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
set queue [expr {$option(-law) eq "xcp" ? "XCP" : "DropTail"}]
$ns duplex-link $left $right $option(-rate) [expr {$option(-rtt) / 2.0}] $queue
$ns queue-limit $left $right $buffer
if {$queue eq "XCP"} {
    # A router of XCP is told the rate of its link.
    foreach {from to} [list $left $right $right $left] {
        [[$ns link $from $to] queue] set-link-capacity $option(-rate)
    }
}

set senders {}
for {set i 0} {$i < $option(-flows)} {incr i} {
    switch $option(-law) {
        window {
            set sender [new Agent/TCP]
            set receiver [new Agent/TCPSink]
            # The windows add up to one bandwidth-delay product, as in Waterfill's cases.
            set bdp [expr {$option(-rate) * $option(-rtt) / 8.0 / 1500.0}]
            $sender set window_ [expr {max(1, int($bdp / $option(-flows)))}]
            $sender set windowInit_ 1000000
        }
        sack {
            set sender [new Agent/TCP/Sack1]
            set receiver [new Agent/TCPSink/Sack1]
        }
        cubic {
            set sender [new Agent/TCP/Linux]
            $sender set timestamps_ true
            $ns at 0 "$sender select_ca cubic"
            set receiver [new Agent/TCPSink/Sack1]
            $receiver set ts_echo_rfc1323_ true
        }
        xcp {
            set sender [new Agent/TCP/Reno/XCP]
            set receiver [new Agent/TCPSink/XCPSink]
        }
        default {
            puts stderr "dumbbell.tcl: -law: must be window, sack, cubic or xcp, got $option(-law)"
            exit 2
        }
    }
    $ns attach-agent $left $sender
    $ns attach-agent $right $receiver
    $ns connect $sender $receiver
    set source [new Application/FTP]
    $source attach-agent $sender
    $ns at [expr {$i * $option(-stagger)}] "$source start"
    lappend senders $sender
}

proc report {} {
    global senders began
    set wall_s [expr {([clock microseconds] - $began) / 1e6}]
    set packets 0
    foreach sender $senders {
        incr packets [expr {int([$sender set ack_]) + 1}]
    }
    puts "{\"packets\": $packets, \"wall_s\": $wall_s}"
    exit 0
}
$ns at $option(-seconds) "report"
set began [clock microseconds]
$ns run
