# frozen_string_literal: true

require "pitwall/analyse/tree/method_info"

module Pitwall
  module Analyse
    # Tells waiting for work from waiting within work, by the stack that waits.
    #
    # Waiting for work is: an empty queue, accept, select, sleep in the thread's own loop, and join in the main thread. Any other
    # wait delays somebody: for a lock, a full queue, a connection, an answer, a child. A wait that can't be told counts as
    # such. A method of a library that waits for work in C is a row of RECEIVE or NEAR_ROOT.
    class Waits
      # Calls that return when work has come.
      RECEIVE = ["TCPServer#accept", "TCPServer#sysaccept", "UNIXServer#accept", "UNIXServer#sysaccept", "Socket#accept", "Socket#sysaccept",
                 "NIO::Selector#select", "Ractor.receive", "Ractor#receive", "Ractor::Port#receive"].freeze
      # IO::Event::Selector::EPoll#select and its kin
      SELECTOR = /\AIO::Event::Selector::\w+#select\z/.freeze
      # Work makes these calls as well, for a connection or an answer. They wait for work only near the thread's root: with at
      # most so many methods above the call. A block counts as its method.
      NEAR_ROOT = { "Thread::Queue#pop" => 3, "Thread::SizedQueue#pop" => 3, "IO.select" => 2, "Kernel#select" => 2, "Kernel#sleep" => 1,
                    "Thread.stop" => 1, "Thread::ConditionVariable#wait" => 1 }.freeze
      # Other names of these.
      NAMES = { "Thread::Queue#shift" => "Thread::Queue#pop", "Thread::Queue#deq" => "Thread::Queue#pop", "Queue#pop" => "Thread::Queue#pop",
                "Thread::SizedQueue#shift" => "Thread::SizedQueue#pop", "Thread::SizedQueue#deq" => "Thread::SizedQueue#pop",
                "Process.sleep" => "Kernel#sleep", "Kernel.sleep" => "Kernel#sleep", "ConditionVariable#wait" => "Thread::ConditionVariable#wait" }.freeze
      # The main thread waits for the others in these.
      JOIN = ["Thread#join", "Thread#value"].freeze
      # The main thread of a server waits in these for signals and for news of its workers.
      HEADS = ["Puma::Cluster#run", "Sidekiq::CLI#launch", "Unicorn::HttpServer#master_sleep", "Pitchfork::HttpServer#master_sleep"].freeze
      HEAD_WAITS = ["IO#wait_readable", "IO#wait", "IO.select", "Kernel#select", "Kernel#sleep"].freeze
      # The main thread of a server stands in one of these, or accepts connections itself.
      SERVERS = ["Puma::Launcher#run", "Rackup::Server#start", "Rack::Server#start", "WEBrick::GenericServer#start", "Thin::Server#start", "Unicorn::HttpServer#join",
                 "Unicorn::HttpServer#worker_loop", "Pitchfork::HttpServer#join", "Falcon::Command::Serve#call", "Sidekiq::CLI#run", "Resque::Worker#work",
                 "SolidQueue::Supervisor#start", "GoodJob::CLI#start", "Delayed::Worker#start"].freeze
      ACCEPT = /\A(?:TCPServer|UNIXServer|Socket)#(?:sys)?accept\z/.freeze
      # These only run a block, or wait on behalf of the method above. They are not counted.
      PASSING = ["Monitor#wait_for_cond", "MonitorMixin::ConditionVariable#wait", "Thread::Mutex#synchronize",
                 "Monitor#synchronize", "MonitorMixin#mon_synchronize", "MonitorMixin#synchronize", "Kernel#loop",
                 "Kernel#catch", "Thread.handle_interrupt", "Thread::Mutex#sleep", "Integer#times", "Array#each", "Kernel#tap"].freeze
      private_constant :RECEIVE, :SELECTOR, :NEAR_ROOT, :NAMES, :JOIN, :HEADS, :HEAD_WAITS, :SERVERS, :ACCEPT, :PASSING

      #: (Record::Segment) -> void
      def initialize(segment)
        @segment = segment
        @known = {}
        @servers = {}
      end

      # True when a thread whose stack ends at this node waits for work.
      # @param main [bool] whether it is the main thread
      #: (Integer, main: bool) -> bool
      def for_work?(node, main:)
        @known.fetch([node, main]) { |key| @known[key] = decide(node, main) }
      end

      # True when a main thread whose stack ends at this node runs a server that ends only when it is told to.
      #: (Integer) -> bool
      def serves?(node)
        @servers.fetch(node) do
          names = names_to_root(node)
          @servers[node] = names.first.to_s.match?(ACCEPT) || SERVERS.any? { |name| names.include?(name) }
        end
      end

      private

      def decide(node, main)
        names = names_to_root(node)
        call, *callers = names.drop_while { |name| name == "Thread::Mutex#sleep" } # below ConditionVariable#wait
        return false unless call
        return true if RECEIVE.include?(call) || call.match?(SELECTOR)
        return main if JOIN.include?(call) || (HEAD_WAITS.include?(call) && HEADS.include?(callers.first))

        most = NEAR_ROOT[NAMES.fetch(call, call)]
        !most.nil? && methods(callers) <= most
      end

      # Blocks by the names of their methods, leaf first.
      def names_to_root(node)
        names = []
        while node.positive?
          names << MethodInfo.around(@segment.frame(node).name).sub(/ \([^()]*:\d+\)\z/, "")
          node = @segment.parents[node]
        end
        names
      end

      # How many methods lead to the wait. Methods between a block and its own method are not counted.
      def methods(names)
        names -= PASSING
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
