# frozen_string_literal: true

require "pitwall/analyse/recording/method_info"

module Pitwall
  module Analyse
    # Tells by the stack whether a thread waits for work or waits within work.
    #
    # Waits for work are: an empty queue, accept, select, sleep in the thread's own loop, and join in the main thread.
    # Waits within work delay the work: for a lock, a full queue, a connection, an answer, a child process.
    # A wait of an unknown kind counts as within work.
    # To support a library that waits for work in C, add its method to RECEIVE or NEAR_ROOT.
    class Waits
      # Calls that always wait for work: they return when work arrives.
      RECEIVE = ["TCPServer#accept", "TCPServer#sysaccept", "UNIXServer#accept", "UNIXServer#sysaccept",
                 "Socket#accept", "Socket#sysaccept", "NIO::Selector#select",
                 "Ractor.receive", "Ractor#receive", "Ractor::Port#receive"].freeze
      # Like RECEIVE, for all selectors of the io-event gem: IO::Event::Selector::EPoll#select…
      SELECTOR = /\AIO::Event::Selector::\w+#select\z/.freeze
      # Calls that wait for work only near the thread's root. Elsewhere, work waits in them for a connection or an
      # answer.
      # The number is the most methods between the root and the call. A block counts as its method.
      NEAR_ROOT = { "Thread::Queue#pop" => 3, "Thread::SizedQueue#pop" => 3,
                    "IO.select" => 2, "Kernel#select" => 2, "Kernel#sleep" => 1,
                    "Thread.stop" => 1, "Thread::ConditionVariable#wait" => 1 }.freeze
      # Other names of calls in NEAR_ROOT.
      ALIASES = { "Thread::Queue#shift" => "Thread::Queue#pop", "Thread::Queue#deq" => "Thread::Queue#pop",
                  "Queue#pop" => "Thread::Queue#pop",
                  "Thread::SizedQueue#shift" => "Thread::SizedQueue#pop",
                  "Thread::SizedQueue#deq" => "Thread::SizedQueue#pop",
                  "Process.sleep" => "Kernel#sleep", "Kernel.sleep" => "Kernel#sleep",
                  "ConditionVariable#wait" => "Thread::ConditionVariable#wait" }.freeze
      # Calls in which the main thread waits for other threads.
      JOIN = ["Thread#join", "Thread#value"].freeze
      # Methods in which the main thread of a server waits for signals and supervises its workers.
      SUPERVISORS = ["Puma::Cluster#run", "Sidekiq::CLI#launch", "Unicorn::HttpServer#master_sleep",
                     "Pitchfork::HttpServer#master_sleep"].freeze
      # Calls in which methods of SUPERVISORS wait.
      SUPERVISOR_WAITS = ["IO#wait_readable", "IO#wait", "IO.select", "Kernel#select", "Kernel#sleep"].freeze
      # Methods on the stack of a server's main thread. A main thread that accepts connections itself may have none.
      SERVERS = ["Puma::Launcher#run", "Rackup::Server#start", "Rack::Server#start", "WEBrick::GenericServer#start",
                 "Thin::Server#start", "Unicorn::HttpServer#join", "Unicorn::HttpServer#worker_loop",
                 "Pitchfork::HttpServer#join", "Falcon::Command::Serve#call", "Sidekiq::CLI#run",
                 "Resque::Worker#work", "SolidQueue::Supervisor#start", "GoodJob::CLI#start",
                 "Delayed::Worker#start"].freeze
      ACCEPT = /\A(?:TCPServer|UNIXServer|Socket)#(?:sys)?accept\z/.freeze
      # Methods that only run a block, or wait on behalf of their caller. NEAR_ROOT does not count them.
      PASS_THROUGH = ["Monitor#wait_for_cond", "MonitorMixin::ConditionVariable#wait", "Thread::Mutex#synchronize",
                      "Monitor#synchronize", "MonitorMixin#mon_synchronize", "MonitorMixin#synchronize", "Kernel#loop",
                      "Kernel#catch", "Thread.handle_interrupt", "Thread::Mutex#sleep", "Integer#times", "Array#each",
                      "Kernel#tap"].freeze
      private_constant :RECEIVE, :SELECTOR, :NEAR_ROOT, :ALIASES, :JOIN, :SUPERVISORS, :SUPERVISOR_WAITS, :SERVERS,
                       :ACCEPT, :PASS_THROUGH

      #: (Record::Segment) -> void
      def initialize(segment)
        @segment = segment
        @parents = segment.parents
        @known = { true => {}, false => {} }
        @names = {} # frame id → name of its method
        @waits = {} # name of a method → whether threads wait for work in it, somewhere
      end

      # Whether a thread whose stack ends at this node waits for work.
      # @param main [bool] whether the thread is the main thread
      #: (Integer, main: bool) -> bool
      def for_work?(node, main:)
        @known[main].fetch(node) { @known[main][node] = decide(node, main) }
      end

      # Whether the stack of a main thread that ends at this node is a server's, which runs until it is stopped.
      #: (Integer) -> bool
      def serves?(node)
        node.positive? && (in_server[node] || name(node).match?(ACCEPT))
      end

      private

      # Most stacks end in a method in which no thread waits for work. Their callers are not looked at.
      def decide(node, main)
        node = @parents[node] while node.positive? && name(node) == "Thread::Mutex#sleep" # below ConditionVariable#wait
        return false if node.zero? || !waits?(name(node))

        call = name(node)
        return true if RECEIVE.include?(call) || call.match?(SELECTOR)
        return main if JOIN.include?(call)

        callers = names_to_root(@parents[node])
        return main if SUPERVISOR_WAITS.include?(call) && SUPERVISORS.include?(callers.first)

        most = near_root(call)
        !most.nil? && methods(callers) <= most
      end

      def waits?(call)
        @waits.fetch(call) do
          @waits[call] = RECEIVE.include?(call) || call.match?(SELECTOR) || JOIN.include?(call) ||
                         SUPERVISOR_WAITS.include?(call) || !near_root(call).nil?
        end
      end

      def near_root(call) = NEAR_ROOT[ALIASES.fetch(call, call)]

      # By node: whether a method of SERVERS is in the stack.
      def in_server
        @in_server ||= (1...@parents.size).each_with_object([false]) do |node, inside|
          inside << (inside[@parents[node]] || SERVERS.include?(name(node)))
        end
      end

      # Names of the methods from the leaf to the root.
      def names_to_root(node)
        names = []
        while node.positive?
          names << name(node)
          node = @parents[node]
        end
        names
      end

      # Name of a node's method. A block has the name of its method.
      def name(node)
        @names[@segment.node_frames[node]] ||=
          MethodInfo.around(@segment.frame(node).name).sub(/ \([^()]*:\d+\)\z/, "")
      end

      # Number of methods that lead to the wait. Methods between a block and the block's own method are not counted.
      def methods(names)
        names -= PASS_THROUGH
        count = 0
        until names.empty?
          outermost = names.rindex(names.first)
          names = names.drop(outermost + 1)
          count += 1
        end
        count
      end
    end
  end
end
